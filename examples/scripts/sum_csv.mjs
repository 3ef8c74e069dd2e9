// parse yields the rows of a CSV text (RFC 4180) as arrays.
function* parse(text) {
  let row = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i <= text.length; i++) {
    const c = text[i];
    if (quoted && c !== undefined) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") [row, field] = [[...row, field], ""];
    else if (c === "\n" || c === undefined) {
      if (row.length > 0 || field !== "") yield [...row, field];
      [row, field] = [[], ""];
    } else if (c !== "\r") field += c;
  }
}

export default function ({ csv, group, value }) {
  const rows = [...parse(csv)];
  const names = rows.shift() ?? [];
  const [by, of] = [group, value].map((column) => {
    const at = names.indexOf(column);
    if (at < 0) throw new RangeError(`there is no column '${column}'; there are ${names.join(", ")}`);
    return at;
  });
  const sums = {};
  rows.forEach((row, i) => {
    const number = Number(row[of] || NaN);
    if (Number.isNaN(number)) throw new RangeError(`row ${i + 2}: '${row[of] ?? ""}' is no number`);
    sums[row[by]] = (sums[row[by]] ?? 0) + number;
  });
  return sums;
}
