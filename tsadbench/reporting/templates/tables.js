// Tables of class tsb-table: DataTables sorts and searches them.
const tables = (DataTable) => document.querySelectorAll("table.tsb-table").forEach((table) => new DataTable(table, {
  paging: false, info: false, order: [], autoWidth: false,
  layout: { topStart: table.tBodies[0].rows.length < 12 ? null : "search", topEnd: null, bottomStart: null, bottomEnd: null },
}));
