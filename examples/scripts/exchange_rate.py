import caisson

API = "https://api.frankfurter.dev"


def run(arguments):
    base, to = arguments["base"], arguments["to"]
    response = caisson.fetch(f"{API}/v1/latest?base={base}&symbols={to}")
    if not response.ok:
        raise RuntimeError(f"the service answered with status {response.status}; are {base} and {to} currencies?")
    answer = response.json()
    return {"rate": answer["rates"][to], "date": answer["date"]}
