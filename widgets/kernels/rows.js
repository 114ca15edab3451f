// The rows of the kernel table: what is counted of each, in which order, which are shown, and as CSV.
//
// A kernel: as `KernelsView.fold` says, {name, device, stream, kind, calls, total, longest, last?,
// running?, lost?, cells?: [[from, to]], earlier?}.

/** The columns: a name, a title, and what a click on its head puts first. */
export const KERNEL_COLUMNS = [
  { name: "name", title: "Kernel", first: "ascending" },
  { name: "on", title: "On", first: "ascending" },
  { name: "calls", title: "Calls", first: "descending", isNumber: true },
  { name: "total", title: "Total", first: "descending", isNumber: true },
  { name: "mean", title: "Mean", first: "descending", isNumber: true },
  { name: "longest", title: "Max", first: "descending", isNumber: true },
  { name: "share", title: "Share", first: "descending", isNumber: true },
  { name: "last", title: "Last run", first: "descending" },
  { name: "cells", title: "Cells", first: "descending" },
];

/** What tells a row from all others. */
export function kernelPath({ name, device, stream, kind }) {
  return `${device}/${stream} ${kind} ${name}`;
}

/** The numbers of the cells that have sent a kernel, as far as they are known. */
export function kernelCells({ cells = [] }) {
  return cells.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
}

/** The same in short: 3–7, 12; what came before that is "…". */
export function kernelCellsText({ cells = [], earlier }) {
  return [...(earlier ? ["…"] : []), ...cells.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))].join(", ");
}

/** What `view` ({search, device, by, order}) lets through, in its order: {path, row, on, mean, share}. */
export function kernelRows(state, { search, device, by, order }) {
  const ofDevice = (state?.kernels ?? []).filter((row) => !device || row.device === device);
  const total = ofDevice.reduce((sum, row) => sum + row.total, device ? 0 : (state?.rest?.total ?? 0));
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = ofDevice.map((row) => kernelRow(row, total)).filter((one) => words.every((word) => `${one.row.name} ${one.on}`.toLowerCase().includes(word)));
  const sign = order === "ascending" ? 1 : -1;
  return rows.sort((a, b) => sign * kernelCompare(kernelValue(a, by), kernelValue(b, by)) || kernelCompare(a.row.name, b.row.name) || kernelCompare(a.on, b.on));
}

/** The sums of the rows that have no line of their own; null when every kernel has one. */
export function kernelRest(state) {
  const rest = state?.rest;
  if (!rest) return null;
  const total = state.kernels.reduce((sum, row) => sum + row.total, 0) + (rest.total ?? 0);
  return kernelRow({ name: `${rest.kinds} more`, calls: 0, total: 0, longest: 0, ...rest }, total);
}

function kernelRow(row, total) {
  return { path: kernelPath(row), row, on: row.device ? `${row.device}/${row.stream}` : "", mean: row.calls ? row.total / row.calls : null, share: total > 0 && row.calls ? row.total / total : null };
}

/** What a row is sorted by; what runs now ran last of all. */
function kernelValue({ row, on, mean, share }, by) {
  switch (by) {
    case "on": return on;
    case "mean": return mean ?? -1;
    case "share": return share ?? -1;
    case "last": return row.running === undefined ? (row.last ?? -1) : Infinity;
    case "cells": return row.cells?.at(-1)[1] ?? -1;
    default: return row[by];
  }
}

function kernelCompare(a, b) {
  if (typeof a === "string") return a.localeCompare(b, "en");
  return a === b ? 0 : a < b ? -1 : 1;
}

const KERNEL_CSV = ["kernel", "device", "stream", "kind", "calls", "total_s", "mean_s", "max_s", "share", "last_run", "ended_with_context", "cells"];

/** Rows as text for a table of another program: seconds, and moments in UTC. */
export function kernelCsv(rows) {
  const lines = rows.map(({ row, mean, share }) => [
    row.name, row.device, row.stream, row.kind, row.calls, row.total, mean, row.longest, share,
    row.last === undefined ? "" : new Date(row.last * 1000).toISOString(), row.lost ?? 0, kernelCellsText(row).replaceAll("–", "-"),
  ]);
  return [KERNEL_CSV, ...lines].map((line) => line.map(kernelQuoted).join(",")).join("\r\n") + "\r\n";
}

function kernelQuoted(value) {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
