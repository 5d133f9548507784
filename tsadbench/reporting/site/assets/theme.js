"use strict";
// Before anything is drawn, so that a dark page does not flash.
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
try {
  const kept = localStorage.getItem("tsadbench-theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch {
  // A browser that lets pages from files keep nothing: each page begins as the system wishes.
}
function keepTheme() {
  const now = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = now;
  try { localStorage.setItem("tsadbench-theme", now); } catch { /* as above */ }
}
