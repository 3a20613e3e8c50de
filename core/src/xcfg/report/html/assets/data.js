"use strict";
/* The data of the page, and small tools on it. Everything from files enters the page as text, never as markup. */
const DATA = JSON.parse(document.getElementById("data").textContent);

const WHOLE = 32;  // letters of a text that stays on one line of a table

function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

function pairs(left, right) {
  return Array.from(left, (value, index) => [value, right[index]]);
}

function short(value) {
  return value === null || value === undefined ? "-" : typeof value === "number" ? Number(value.toPrecision(3)) : value;
}

function table(headings, rows, label) {
  const made = document.createElement("table");
  made.setAttribute("aria-label", label);
  const head = made.createTHead().insertRow();
  headings.forEach((heading, place) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = heading;
    if (rows.some((row) => typeof row[place] === "number")) cell.className = "number";
    head.append(cell);
  });
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) {
      const cell = line.insertCell();
      cell.textContent = short(value);
      if (typeof value === "number") cell.className = "number";
      else if (typeof value === "string" && value.length <= WHOLE) cell.className = "whole";
    }
  }
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
