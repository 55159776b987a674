import { ServiceError } from './service-error.js'

/** A fault in one direction; `upstream` is towards the service. */
export interface Toxic {
  readonly name: string
  readonly type: 'timeout' | 'latency'
  readonly stream: 'upstream' | 'downstream'
  /** `timeout`: milliseconds until the link is closed, 0: never. `latency`: milliseconds. */
  readonly attributes: { readonly timeout: number } | { readonly latency: number; readonly jitter: number }
}

const REQUEST_TIMEOUT_MS = 30_000

/** The part of toxiproxy's HTTP API that one proxy needs (toxiproxy 2.12, README "HTTP API"). */
export class ToxiproxyClient {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** @returns the program's version */
  async version(): Promise<string> {
    return await this.#request('GET', '/version')
  }

  /** @param listen `host:port` to listen on */
  async createProxy(name: string, listen: string, upstream: string): Promise<void> {
    await this.#request('POST', '/proxies', { name, listen, upstream, enabled: true })
  }

  /** Off: no port is open and every link is closed. */
  async setEnabled(name: string, enabled: boolean): Promise<void> {
    await this.#request('POST', `/proxies/${name}`, { enabled })
  }

  async addToxic(name: string, toxic: Toxic): Promise<void> {
    await this.#request('POST', `/proxies/${name}/toxics`, toxic)
  }

  /** Changes the attributes of a toxic that exists. */
  async updateToxic(name: string, { name: toxic, attributes }: Toxic): Promise<void> {
    await this.#request('POST', `/proxies/${name}/toxics/${toxic}`, { attributes })
  }

  /** Whether one of this name existed. */
  async removeToxic(name: string, toxic: string): Promise<void> {
    await this.#request('DELETE', `/proxies/${name}/toxics/${toxic}`)
  }

  async #request(method: string, path: string, body?: unknown): Promise<string> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const text = await response.text()
    if (!response.ok)
      throw new ServiceError(`toxiproxy refused ${method} ${path}: ${response.status} ${text.slice(0, 500)}`)
    return text
  }
}
