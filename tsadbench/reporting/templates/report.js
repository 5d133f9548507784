// Tables, and one recording at a time, with libraries that are packed into the page.
(async () => {
  const unpacked = async (element) => {
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  for (const library of document.querySelectorAll("script.library")) {
    const code = document.createElement("script");
    code.textContent = await unpacked(library);
    document.head.append(code);
  }
  tables(DataTable);
  const places = [...document.querySelectorAll(".recording")];
  if (!places.length) return void (document.documentElement.dataset.ready = "1");
  const draws = [];
  for (const place of places) {
    const figures = JSON.parse(await unpacked(place.querySelector("script")));
    const which = place.querySelector(".which"), who = place.querySelector(".who"), plot = place.querySelector(".plot");
    const draw = () => {
      const { data, layout } = figures[which.value], colour = (name) => getComputedStyle(document.body).getPropertyValue(name);
      const shown = data.map((trace) => ({ ...trace, visible: trace.meta === undefined || trace.meta === Number(who.value) }));
      const axes = Object.fromEntries(Object.keys(layout).filter((key) => /^[xy]axis/.test(key)).map((key) => [key,
        { ...layout[key], gridcolor: colour("--grid"), linecolor: colour("--grid") }]));
      axes.yaxis3.type = layout.meta.logarithmic[who.value] ? "log" : "linear";
      const font = { color: colour("--ink"), family: "system-ui, sans-serif", size: 11 };
      const page = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font };
      Plotly.react(plot, shown, { ...layout, ...axes, ...page }, { responsive: true, displaylogo: false, displayModeBar: false });
    };
    which.addEventListener("change", draw);
    who.addEventListener("change", draw);
    draws.push(draw);
    draw();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draws.forEach((draw) => draw()));
  addEventListener("beforeprint", () => draws.forEach((draw) => draw()));
  document.documentElement.dataset.ready = "1";
})();
