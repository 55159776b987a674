import { exec } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { WebMQError } from 'webmq-client/protocol'
import { type ClientOptions, WebSocket } from 'ws'
import { defined } from '../../../../kernel/base/defined.js'
import { type Client, createQuietClient } from '../../client/quiet.js'
import { inWords } from '../../terminal.js'
import { type DoctorTarget, elapsedMs, type Finding, failure, ok, tlsOptionsOf, warning, whyOf } from '../target.js'

/** So many that a balancer gives some to each of three nodes. */
const LISTENER_COUNT = 9
const PUBLISH_INTERVAL_MS = 50
const BEFORE_MS = 1_000
/** Behind most proxies a client is back within two seconds; a dead one is found by its ping timeout of 35 s. */
const BACK_LIMIT_MS = 45_000
const AFTER_MS = 2_000
/** For the command. One that is still running then is ended. */
const COMMAND_LIMIT_MS = 60_000

interface Listener {
  readonly client: Client
  readonly received: Set<number>
  gapReason: string | undefined
  awayMs: number
}

/**
 * Kills a node while clients listen and publish, and tells whether they missed something.
 * @param command Kills one of the nodes at once, as `kill -9` does. The operator has consented to it.
 * @param token May listen to and publish `webmq-doctor.#`.
 */
export async function killOne(
  target: DoctorTarget,
  token: string | undefined,
  command: string,
): Promise<readonly Finding[]> {
  const key = `webmq-doctor.${randomUUID()}`
  const made = Array.from({ length: LISTENER_COUNT + 1 }, () => clientOf(target, token))
  let published: ReturnType<typeof publishUntilStopped> | undefined
  try {
    const [publisher, ...clients] = made
    if (publisher === undefined) return []
    const listeners = await Promise.all(clients.map((client) => listen(client, key)))
    const nodes = new Set(clients.map(({ status }) => status.connection?.node))
    published = publishUntilStopped(publisher, key)
    await delay(BEFORE_MS)
    const victims = await Promise.all([
      promisify(exec)(command, { timeout: COMMAND_LIMIT_MS }),
      waitForVictims(listeners),
    ]).then(([, found]) => found)
    await delay(AFTER_MS)
    const acknowledged = await published.stop()
    await delay(AFTER_MS)
    return [verdictOf(listeners, victims, acknowledged, nodes.size)]
  } catch (error) {
    const detail = error instanceof WebMQError ? error.message : whyOf(error)
    return [
      failure('kill one', `not tried to the end: ${detail}`, 'Look at the command of --kill-one, and at the token.'),
    ]
  } finally {
    await Promise.all(made.map((client) => client.close()))
    await published?.stop()
  }
}

function clientOf(target: DoctorTarget, token: string | undefined): Client {
  const trusting: ClientOptions = { ...tlsOptionsOf(target), rejectUnauthorized: true }
  class TrustingSocket extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols, trusting)
    }
  }
  return createQuietClient({ url: target.url.href, WebSocket: TrustingSocket, ...defined({ token }) })
}

async function listen(client: Client, key: string): Promise<Listener> {
  const listener: Listener = { client, received: new Set(), gapReason: undefined, awayMs: 0 }
  client.on('gap', ({ reason }) => {
    listener.gapReason = reason
  })
  await client.listen(key, (payload: unknown) => {
    listener.received.add(Number(payload))
  }).ready
  return listener
}

function publishUntilStopped(client: Client, key: string): { stop(): Promise<readonly number[]> } {
  const acknowledged: number[] = []
  const waiting: Promise<unknown>[] = []
  let next = 0
  const timer = setInterval(() => {
    const number = next
    next += 1
    // One that is refused was not promised to anybody.
    waiting.push(
      client.publish(key, number).then(
        () => acknowledged.push(number),
        () => undefined,
      ),
    )
  }, PUBLISH_INTERVAL_MS)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(waiting)
      return acknowledged
    },
  }
}

/** Resolves when the clients that lost their node are connected again, or the time is over. */
async function waitForVictims(listeners: readonly Listener[]): Promise<readonly Listener[]> {
  const sinceMs = performance.now()
  const victims = new Set<Listener>()
  while (performance.now() - sinceMs < BACK_LIMIT_MS) {
    const away = listeners.filter(({ client }) => client.status.state !== 'connected')
    for (const each of away) victims.add(each)
    for (const each of away) each.awayMs = elapsedMs(sinceMs)
    if (victims.size > 0 && away.length === 0 && performance.now() - sinceMs > BEFORE_MS) break
    await delay(10)
  }
  return [...victims]
}

function verdictOf(
  listeners: readonly Listener[],
  victims: readonly Listener[],
  acknowledged: readonly number[],
  nodeCount: number,
): Finding {
  const missed = listeners.map(({ received }) => acknowledged.filter((number) => !received.has(number)).length)
  const total = missed.reduce((sum, count) => sum + count, 0)
  const gaps = listeners.flatMap(({ gapReason }) => gapReason ?? [])
  const awayS = Math.max(0, ...victims.map(({ awayMs }) => awayMs)) / 1_000
  const who = `${victims.length} of ${listeners.length} clients on ${nodeCount} nodes lost theirs`
  const what = `${acknowledged.length} messages`
  if (victims.length === 0) {
    return failure(
      'kill one',
      `no client lost its node within ${inWords(BACK_LIMIT_MS / 1_000)}`,
      'Look at what the command of --kill-one ends.',
    )
  }
  if (victims.some(({ client }) => client.status.state !== 'connected')) {
    return failure(
      'kill one',
      `${who}, and are not back after ${inWords(BACK_LIMIT_MS / 1_000)}`,
      'Does the proxy ask /ready, and has it other nodes?',
    )
  }
  if (gaps.length > 0) {
    const text = `${who}, back after at most ${awayS} s; ${gaps.length} were told a gap (${[...new Set(gaps)].join(', ')})`
    return warning('kill one', text, 'Keep history for these keys, in a broker that all nodes share.')
  }
  if (total > 0)
    return failure(
      'kill one',
      `${who}, and ${total} of ${what} are missing without a gap`,
      'This is a bug of WebMQ: please report it.',
    )
  return ok('kill one', `${who}, back after at most ${awayS} s; recovered, nothing of ${what} is missing`)
}
