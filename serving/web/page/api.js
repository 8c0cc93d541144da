// Asks the server, over the same REST API that everybody uses.

export class ServerError extends Error {}

export async function models() {
  return read("/page/models.json");
}

// One row to a signature; gives its outputs, each without the dimension of the batch.
export async function ask(model, signature, row) {
  const path = `/v1/models/${encodeURIComponent(model.name)}/versions/${model.version}:predict`;
  const inputs = {};
  for (const entry of model.contract.signatures[signature].inputs) {
    const value = row[entry.name];
    inputs[entry.name] = [value];
    if (entry.kind === "points" || entry.kind === "positions") {
      inputs[`${entry.name}_length`] = [value.length];
    }
  }
  const body = JSON.stringify({ signature_name: signature, inputs });
  const answer = await read(path, { method: "POST", body });
  const promised = model.contract.signatures[signature].outputs;
  const names = Object.keys(promised);
  const found = names.length === 1 ? { [names[0]]: answer.outputs } : answer.outputs;
  const outputs = {};
  for (const name of names) outputs[name] = trimmed(found, name, promised[name]);
  return outputs;
}

// What is real of an output of the first row.
function trimmed(found, name, dimensions) {
  const cut = (value, axes) => {
    if (axes.length === 0) return value;
    const length = axes[0] === null ? value.length : found[axes[0]][0];
    return value.slice(0, length).map((inner) => cut(inner, axes.slice(1)));
  };
  return cut(found[name][0], dimensions);
}

async function read(path, options = {}) {
  const response = await fetch(path, options).catch(() => {
    throw new ServerError("The server does not answer.");
  });
  const text = await response.text();
  let content = null;
  try {
    // Numbers that are none are no JSON, but the server's protocol has them.
    content = JSON.parse(text.replace(/(?<=[[\s:,])-?(NaN|Infinity)(?=[,\s\]}])/g, "null"));
  } catch {
    throw new ServerError(`The server answered ${response.status}, and no JSON.`);
  }
  if (!response.ok) throw new ServerError(content.error ?? `The server answered ${response.status}.`);
  return content;
}
