import * as caisson from "/caisson/lib/caisson.mjs";

const API = "https://api.frankfurter.dev";

export default function ({ base, to }) {
  const response = caisson.fetch(`${API}/v1/latest?base=${base}&symbols=${to}`);
  if (!response.ok) throw new Error(`the service answered with status ${response.status}; are ${base} and ${to} currencies?`);
  const { rates, date } = response.json();
  return { rate: rates[to], date };
}
