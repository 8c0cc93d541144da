// Requests to the server's REST API.

let token = null;

export class ServerError extends Error {}

export async function listModels() {
  return request("/page/models.json");
}

// Runs a signature on one row, and returns its outputs without the batch dimension and padding.
export async function predict(model, signature, row) {
  const path = `/v1/models/${encodeURIComponent(model.name)}/versions/${model.version}:predict`;
  const inputs = {};
  for (const entry of model.contract.signatures[signature].inputs) {
    const value = row[entry.name];
    inputs[entry.name] = [value];
    if (Array.isArray(value)) {
      inputs[`${entry.name}_length`] = [value.length];
    }
  }
  const body = JSON.stringify({ signature_name: signature, inputs });
  const response = await request(path, { method: "POST", body });
  const dimensions = model.contract.signatures[signature].outputs;
  const names = Object.keys(dimensions);
  const batch = names.length === 1 ? { [names[0]]: response.outputs } : response.outputs;
  const outputs = {};
  for (const name of names) outputs[name] = unpad(batch, name, dimensions[name]);
  return outputs;
}

// Returns an output of the first row, with each dimension cut to its real length.
function unpad(batch, name, dimensions) {
  const cut = (value, axes) => {
    if (axes.length === 0) return value;
    const length = axes[0] === null ? value.length : batch[axes[0]][0];
    return value.slice(0, length).map((inner) => cut(inner, axes.slice(1)));
  };
  return cut(batch[name][0], dimensions);
}

async function request(path, options = {}) {
  return parse(await send(path, options));
}

async function send(path, options) {
  const authorized = () => fetch(path, { ...options, headers: token ? { authorization: `Bearer ${token}` } : {} }).catch(() => {
    throw new ServerError("The server does not respond.");
  });
  let response = await authorized();
  if (response.status === 401 && (token = prompt("Token for this server"))) response = await authorized();
  if (response.ok) return response;
  const { error } = await parse(response);
  throw new ServerError(error ?? `The request failed with status ${response.status}.`);
}

async function parse(response) {
  try {
    return await response.json();
  } catch {
    throw new ServerError(`The server's response (status ${response.status}) is not JSON.`);
  }
}
