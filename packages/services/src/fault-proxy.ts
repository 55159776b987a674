import { freePort } from './free-port.js'
import { ServiceError } from './service-error.js'
import { SupervisedProcess } from './supervised-process.js'
import { type Toxic, ToxiproxyClient } from './toxiproxy-client.js'
import { obtainToxiproxy } from './toxiproxy-program.js'

/** A TCP proxy on loopback, in a process of its own, with faults to switch on. Starts healthy. */
export interface FaultProxy extends AsyncDisposable {
  /** The upstream's URL, with this proxy's host and port. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** Closes all links and refuses new ones: connections are reset or refused. */
  cut(): Promise<void>
  /**
   * A half-open network: from now on every byte vanishes, in both directions and on new links too, and nothing closes.
   * Lost bytes do not come back, so `heal` closes these links, as TCP would in the end.
   */
  swallow(): Promise<void>
  /** Delays every byte by this much, in each direction, on new and old links. 0: no delay. */
  latency(delayMs: number): Promise<void>
  /** Ends what `cut`, `swallow` and `latency` did: new links work. */
  heal(): Promise<void>
  /** Ends the proxy with its links. Idempotent. */
  stop(): Promise<void>
}

const NAME = 'upstream'
const STREAMS = ['upstream', 'downstream'] as const
const START_TIMEOUT_MS = 60_000
const POLL_INTERVAL_MS = 20
const STOP_TIMEOUT_MS = 1_000
const HOST = '127.0.0.1'

/**
 * A proxy in front of a service, with faults to switch on.
 * @param upstream URL of the service, with a port: `redis://127.0.0.1:6379`.
 * @throws {ServiceError} when toxiproxy is not available, or does not start.
 */
export async function startFaultProxy({ url }: { readonly url: string }): Promise<FaultProxy> {
  const upstream = new URL(url)
  if (upstream.port === '') throw new ServiceError(`the URL of a fault proxy's upstream needs a port: ${upstream.host}`)
  const { file } = await obtainToxiproxy()
  const [apiPort, port] = [await freePort(), await freePort()]
  const args = ['-host', HOST, '-port', String(apiPort)]
  const process = new SupervisedProcess({ title: 'toxiproxy-server', command: file, args })
  const api = new ToxiproxyClient(`http://${HOST}:${apiPort}`)
  try {
    await waitUntilReady(process, api)
    await api.createProxy(NAME, `${HOST}:${port}`, upstream.host)
  } catch (error) {
    await process.kill()
    throw error
  }
  return new Toxiproxy(process, api, url, port)
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
  readonly #process: SupervisedProcess
  readonly #api: ToxiproxyClient
  readonly #toxics = new Set<string>()

  constructor(process: SupervisedProcess, api: ToxiproxyClient, upstreamUrl: string, port: number) {
    this.#process = process
    this.#api = api
    this.port = port
    const url = new URL(upstreamUrl)
    this.url = upstreamUrl.replace(url.host, `${HOST}:${port}`)
  }

  async cut(): Promise<void> {
    await this.#api.setEnabled(NAME, false)
  }

  async swallow(): Promise<void> {
    for (const stream of STREAMS) {
      await this.#add(swallowToxic(stream))
    }
  }

  /** A delay that ends becomes 0: to remove it, toxiproxy waits up to 5 s for each link that is busy. */
  async latency(delayMs: number): Promise<void> {
    for (const stream of STREAMS) {
      const toxic = latencyToxic(stream, delayMs)
      if (this.#toxics.has(toxic.name)) await this.#api.updateToxic(NAME, toxic)
      else if (delayMs > 0) await this.#add(toxic)
    }
  }

  async heal(): Promise<void> {
    await this.latency(0)
    for (const stream of STREAMS) await this.#remove(swallowToxic(stream).name)
    await this.#api.setEnabled(NAME, true)
  }

  async stop(): Promise<void> {
    await this.#process.end(STOP_TIMEOUT_MS)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #add(toxic: Toxic): Promise<void> {
    if (this.#toxics.has(toxic.name)) return
    await this.#api.addToxic(NAME, toxic)
    this.#toxics.add(toxic.name)
  }

  async #remove(name: string): Promise<void> {
    if (!this.#toxics.has(name)) return
    await this.#api.removeToxic(NAME, name)
    this.#toxics.delete(name)
  }
}

function swallowToxic(stream: Toxic['stream']): Toxic {
  return { name: `swallow-${stream}`, type: 'timeout', stream, attributes: { timeout: 0 } }
}

function latencyToxic(stream: Toxic['stream'], delayMs: number): Toxic {
  return { name: `latency-${stream}`, type: 'latency', stream, attributes: { latency: delayMs, jitter: 0 } }
}
