import { freePort } from './free-port.js'
import { ServiceError } from './service-error.js'
import { SupervisedProcess } from './supervised-process.js'
import { type Toxic, ToxiproxyClient } from './toxiproxy-client.js'
import { obtainToxiproxy } from './toxiproxy-program.js'

/** A direction of a link; `upstream` is towards the service. */
export type Stream = 'upstream' | 'downstream'

/** A TCP proxy on loopback, in a process of its own, with faults to switch on. Starts healthy. */
export interface FaultProxy extends AsyncDisposable {
  /** The upstream's URL, with this proxy's host and port. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** Closes all links and refuses new ones: connections are reset or refused. */
  cut(): Promise<void>
  /**
   * A half-open network: from now on every byte vanishes, on new links too, and nothing closes. Lost bytes do not come
   * back, so `heal` closes these links, as TCP would in the end.
   * @param streams The directions in which bytes vanish; by default both.
   */
  swallow(streams?: readonly Stream[]): Promise<void>
  /**
   * A network that stands still: from now on every byte waits, on new links too, and nothing closes. `heal` delivers
   * what has waited, in order.
   * @param streams The directions in which bytes wait; by default both.
   */
  stall(streams?: readonly Stream[]): Promise<void>
  /** Delays every byte by this much, in each direction, on new and old links. 0: no delay. */
  latency(delayMs: number): Promise<void>
  /** Passes at most this many bytes per second on, in each direction and on each link. */
  throttle(bytesPerSecond: number): Promise<void>
  /** Ends every fault: new links work. */
  heal(): Promise<void>
  /** Ends the proxy with its links. Idempotent. */
  stop(): Promise<void>
}

/** Several fault proxies in one process. */
export interface FaultProxies extends AsyncDisposable {
  /** In the order of the upstreams. `stop` of one ends that one alone. */
  readonly proxies: readonly FaultProxy[]
  /** Ends all of them with their links. Idempotent. */
  stop(): Promise<void>
}

const STREAMS: readonly Stream[] = ['upstream', 'downstream']
const START_TIMEOUT_MS = 10_000
const POLL_INTERVAL_MS = 20
const STOP_TIMEOUT_MS = 1_000
const HOST = '127.0.0.1'
/** Of a stalled link: longer than any test. Bytes that wait for a delay are passed on when it is taken away. */
const STALL_DELAY_MS = 24 * 60 * 60 * 1_000
/** toxiproxy counts the rate of a link in kilobytes. */
const BYTES_PER_KILOBYTE = 1_000

/**
 * A proxy in front of a service, with faults to switch on.
 * @param upstream URL of the service, with a port: `redis://127.0.0.1:6379`.
 * @throws {ServiceError} when toxiproxy is not available, or does not start.
 */
export async function startFaultProxy(upstream: { readonly url: string }): Promise<FaultProxy> {
  const { proxies, stop } = await startFaultProxies([upstream])
  const [proxy] = proxies
  if (proxy === undefined) throw new ServiceError('toxiproxy has made no proxy')
  return Object.assign(proxy, { stop })
}

/**
 * A proxy in front of each service, all in one process.
 * @throws {ServiceError} when toxiproxy is not available, or does not start.
 */
export async function startFaultProxies(upstreams: readonly { readonly url: string }[]): Promise<FaultProxies> {
  const targets = upstreams.map(({ url }) => new URL(url))
  const vague = targets.find(({ port }) => port === '')
  if (vague !== undefined) throw new ServiceError(`the URL of a fault proxy's upstream needs a port: ${vague.host}`)
  const { file } = await obtainToxiproxy()
  const apiPort = await freePort()
  const args = ['-host', HOST, '-port', String(apiPort)]
  const process = new SupervisedProcess({ title: 'toxiproxy-server', command: file, args })
  const api = new ToxiproxyClient(`http://${HOST}:${apiPort}`)
  const proxies: FaultProxy[] = []
  try {
    await waitUntilReady(process, api)
    for (const [index, { url }] of upstreams.entries()) {
      const [name, port] = [`proxy-${index}`, await freePort()]
      await api.createProxy(name, `${HOST}:${port}`, new URL(url).host)
      proxies.push(new Toxiproxy(api, name, url, port))
    }
  } catch (error) {
    await process.kill()
    throw error
  }
  const stop = () => process.end(STOP_TIMEOUT_MS)
  return { proxies, stop, [Symbol.asyncDispose]: stop }
}

async function waitUntilReady(process: SupervisedProcess, api: ToxiproxyClient): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    try {
      await api.version()
      return
    } catch (cause) {
      if (!process.isRunning || Date.now() > deadline) {
        throw new ServiceError(`toxiproxy did not start: ${process.output}`, cause)
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
    }
  }
}

class Toxiproxy implements FaultProxy {
  readonly url: string
  readonly host = HOST
  readonly port: number
  readonly #api: ToxiproxyClient
  readonly #name: string
  readonly #toxics = new Set<string>()
  #stopped: Promise<void> | undefined

  constructor(api: ToxiproxyClient, name: string, upstreamUrl: string, port: number) {
    this.#api = api
    this.#name = name
    this.port = port
    const url = new URL(upstreamUrl)
    this.url = upstreamUrl.replace(url.host, `${HOST}:${port}`)
  }

  async cut(): Promise<void> {
    await this.#api.setEnabled(this.#name, false)
  }

  async swallow(streams = STREAMS): Promise<void> {
    for (const stream of streams) {
      await this.#add({ name: `swallow-${stream}`, type: 'timeout', stream, attributes: { timeout: 0 } })
    }
  }

  async stall(streams = STREAMS): Promise<void> {
    for (const stream of streams) {
      const attributes = { latency: STALL_DELAY_MS, jitter: 0 }
      await this.#add({ name: `stall-${stream}`, type: 'latency', stream, attributes })
    }
  }

  async latency(delayMs: number): Promise<void> {
    for (const stream of STREAMS) {
      const name = `latency-${stream}`
      await this.#remove(name)
      if (delayMs > 0) await this.#add({ name, type: 'latency', stream, attributes: { latency: delayMs, jitter: 0 } })
    }
  }

  async throttle(bytesPerSecond: number): Promise<void> {
    const rate = Math.max(1, Math.round(bytesPerSecond / BYTES_PER_KILOBYTE))
    for (const stream of STREAMS) {
      const name = `throttle-${stream}`
      await this.#remove(name)
      await this.#add({ name, type: 'bandwidth', stream, attributes: { rate } })
    }
  }

  async heal(): Promise<void> {
    for (const name of [...this.#toxics]) await this.#remove(name)
    await this.#api.setEnabled(this.#name, true)
  }

  async stop(): Promise<void> {
    this.#stopped ??= this.#api.deleteProxy(this.#name)
    await this.#stopped
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #add(toxic: Toxic): Promise<void> {
    if (this.#toxics.has(toxic.name)) return
    await this.#api.addToxic(this.#name, toxic)
    this.#toxics.add(toxic.name)
  }

  async #remove(name: string): Promise<void> {
    if (!this.#toxics.has(name)) return
    await this.#api.removeToxic(this.#name, name)
    this.#toxics.delete(name)
  }
}
