const KEY_NAME = 'webmq.admin.key'

/** The key lives as long as this tab, and never in an address. */
export const keyStore = {
  read: () => sessionStorage.getItem(KEY_NAME),
  save: (key) => sessionStorage.setItem(KEY_NAME, key),
  forget: () => sessionStorage.removeItem(KEY_NAME),
}

/** An answer that is not 2xx. */
export class Refused extends Error {
  constructor(status, { code = status, message = '' } = {}) {
    super(`${code}: ${message}`)
    this.isDenied = status === 401 || status === 403
  }
}

/** Asks the HTTP API of this port with the key. */
export async function ask(path, { query = {}, body, signal } = {}) {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined))
  const response = await fetch(parameters.size === 0 ? path : `${path}?${parameters}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${keyStore.read()}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: 'no-store',
    signal,
  })
  if (response.ok) return response
  throw new Refused(response.status, await response.json().catch(() => undefined))
}

/** The JSON of an answer. */
export async function askJson(path, options) {
  return (await ask(path, options)).json()
}
