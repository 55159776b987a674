import type { BalancerName, LoadBalancer, LoadBalancerOptions } from 'webmq-services'
import { RunError } from './exit-codes.js'
import { importBeside } from './missing-package.js'

/** A process or thread that a run starts and ends. */
interface Part {
  /** Rejects when it ends unasked; never resolves. */
  readonly failed?: Promise<never>
  /** Resolves when it is gone. Idempotent. */
  stop(): Promise<unknown>
}

/** The processes and threads of a run; see {@link withParts}. */
export class Parts {
  /** Aborted when the run is over, or the user interrupts it. */
  readonly signal: AbortSignal
  readonly #breakOff: (reason: unknown) => void
  readonly #started: Promise<Part>[] = []

  constructor(signal: AbortSignal, breakOff: (reason: unknown) => void) {
    this.signal = signal
    this.#breakOff = breakOff
  }

  /** Starts one part. @param mayDie Whether the run goes on when it ends unasked. */
  async add<Kind extends Part>(start: () => Kind | Promise<Kind>, mayDie = false): Promise<Kind> {
    this.signal.throwIfAborted()
    const starting = Promise.resolve(start())
    this.#started.push(starting)
    const part = await starting
    if (!mayDie) part.failed?.catch(this.#breakOff)
    return part
  }

  /** Ends all parts, the last one first. */
  async stop(): Promise<void> {
    for (const starting of this.#started.toReversed()) {
      // A part that did not start left nothing behind, and the run has failed because of it.
      const part = await starting.catch(() => undefined)
      await part?.stop()
    }
  }
}

/**
 * Runs the work until it settles, one of its parts ends unasked, or the user interrupts. When it settles, none of its
 * parts is left.
 */
export async function withParts<T>(interrupted: AbortSignal, work: (parts: Parts) => Promise<T>): Promise<T> {
  interrupted.throwIfAborted()
  const over = new AbortController()
  let breakOff: (reason: unknown) => void = () => undefined
  const broken = new Promise<never>((_, reject) => {
    breakOff = reject
  })
  broken.catch(() => undefined) // The race below may be over before.
  const interrupt = () => {
    over.abort(interrupted.reason)
    breakOff(interrupted.reason)
  }
  interrupted.addEventListener('abort', interrupt, { once: true })
  const parts = new Parts(over.signal, breakOff)
  const working = work(parts)
  try {
    return await Promise.race([broken, working])
  } finally {
    interrupted.removeEventListener('abort', interrupt)
    over.abort()
    working.catch(() => undefined) // If it was not the first to fail, it fails now because everything is taken away.
    await parts.stop()
  }
}

/**
 * Starts something of webmq-services.
 * @throws {RunError} when the package is not installed, or it does not start; nothing is left then.
 */
export async function startService<T>(
  title: string,
  start: (services: typeof import('webmq-services')) => Promise<T>,
): Promise<T> {
  const services = await importBeside(() => import('webmq-services'), title)
  try {
    return await start(services)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RunError(`${title} could not be started: ${reason}`, { cause })
  }
}

/** A load balancer before several nodes. */
export async function startBalancer(
  ports: readonly number[],
  program: BalancerName = 'haproxy',
  more: Omit<LoadBalancerOptions, 'ports' | 'program'> = {},
): Promise<LoadBalancer> {
  const options = { ports, program, ...more }
  return await startService('the load balancer', ({ startLoadBalancer }) => startLoadBalancer(options))
}
