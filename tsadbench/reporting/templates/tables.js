// Tables of class tsb-table: a click on a heading sorts; a search box and a choice of rows above long ones.
document.querySelectorAll("table.tsb-table").forEach((table) => {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const found = row.cells[column].dataset.v, number = Number(found);
    return found === undefined || found === "" ? null : Number.isNaN(number) ? found : number;
  };
  const sort = (column, down) => {
    const order = [...rows].sort((a, b) => {
      const x = value(a, column), y = value(b, column);
      if (x === null || y === null) return (x === null) - (y === null);
      const sign = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
      return down ? -sign : sign;
    });
    body.append(...order);
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"));
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const text = rows.some((row) => typeof value(row, column) === "string") || column === 0;
      const now = head.getAttribute("aria-sort");
      sort(column, now === "ascending" ? true : now === "descending" ? false : !text);
    });
  });
  if (rows.length < 12) return;
  const bar = document.createElement("div"), search = document.createElement("input"), choice = document.createElement("select");
  bar.className = "tsb-bar";
  search.type = "search";
  search.placeholder = "Search";
  search.setAttribute("aria-label", "Search rows");
  choice.setAttribute("aria-label", "Rows");
  const keep = { "all rows": () => true, "detectors": (row) => !row.classList.contains("floor"),
    "floors": (row) => row.classList.contains("floor"), "causal": (row) => !row.textContent.includes("look-ahead") };
  choice.append(...Object.keys(keep).map((name) => new Option(name)));
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row) => {
      const text = row.textContent.toLowerCase();
      row.hidden = !keep[choice.value](row) || !words.every((word) => text.includes(word));
    });
  };
  search.addEventListener("input", filter);
  choice.addEventListener("change", filter);
  bar.append(search, ...(rows.some((row) => row.classList.contains("floor")) ? [choice] : []));
  table.parentElement.before(bar);
});
