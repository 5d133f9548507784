"use strict";
// What the page holds.

const content = JSON.parse(document.getElementById("content").textContent);
