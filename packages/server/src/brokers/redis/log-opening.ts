import { setTimeout } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import type { Position } from '../../ports/broker.js'
import { sourceBytes } from '../remote/envelope.js'
import type { LogPosition } from '../remote/link.js'
import type { RedisLog } from './log.js'
import { appendScript, openScript } from './log-scripts.js'
import type { RedisPair } from './pair.js'

/** Where a link begins, as the script says. */
export interface LogStart {
  readonly start: Position
  readonly isContinued: boolean
  readonly reign: string
}

const VOUCH_POLL_MS = 50

/**
 * Opens the log at a server: loads the scripts, and asks where to begin, until this node or another has put up the fence
 * of this reign.
 * @param vouchMs Time that the node gives others to say that the log has its end, when it cannot say so itself.
 * @param subscribed Resolves when the channel is subscribed: it tells of everything that happens after the opening.
 * @throws {WebMQError} `E_BROKER_REFUSED` when the server cannot hold a log.
 */
export async function openLog(
  log: RedisLog,
  pair: RedisPair,
  after: LogPosition | undefined,
  vouchMs: number,
  subscribed: Promise<void> = Promise.resolve(),
): Promise<LogStart> {
  const scripts = [appendScript, openScript].map(({ source }) => pair.ask((redis) => redis.script('LOAD', source)))
  await Promise.all([assertRunId(pair), subscribed, ...scripts])
  const source = after?.source === undefined ? '' : sourceBytes(after.source)
  const position = [after?.epoch ?? '', String(after?.offset ?? 0), source]
  const lead = [...log.keys, ...log.leadArguments, ...position]
  const { publishScript, followedUntilMs } = log
  const awayMs = () => (followedUntilMs === undefined ? '' : Math.ceil(performance.now() - followedUntilMs))
  for (let leftMs = vouchMs; ; leftMs -= VOUCH_POLL_MS) {
    const isLastCall = leftMs <= 0 ? '1' : '0'
    const reply = await pair.ask((redis) =>
      redis.evalsha(openScript.sha, log.keys.length, ...lead, awayMs(), isLastCall, publishScript),
    )
    const [epoch, offset, isContinued, reign] = Array.isArray(reply) ? reply.map(String) : []
    if (epoch !== undefined && reign !== undefined)
      return { start: { epoch, offset: Number(offset) }, isContinued: isContinued === '1', reign }
    if (isLastCall === '1') throw new Error('the log answers otherwise than expected')
    await setTimeout(VOUCH_POLL_MS)
  }
}

/** Without it, nobody could see that the log may have lost its end. */
async function assertRunId(pair: RedisPair): Promise<void> {
  const info = await pair.ask((redis) => redis.info('server'))
  if (/^run_id:\w+/m.test(info)) return
  const detail = 'a Redis whose INFO has no run_id cannot hold a log: a restart would go unnoticed'
  throw new WebMQError('E_BROKER_REFUSED', { detail })
}
