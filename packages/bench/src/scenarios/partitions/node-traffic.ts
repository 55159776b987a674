import { setTimeout as sleep } from 'node:timers/promises'
import type { WebMQServer } from 'webmq-server'
import { nowUs } from '../../measure/clock.js'
import {
  createLatencyHistogram,
  type LatencySummary,
  recordUs,
  summarizeLatency,
} from '../../measure/latency-histogram.js'
import type { PublishPlan, PublishReport } from './messages.js'
import { keyOf } from './rooms.js'

/** A message begins with its room, its number within the room, from 1, and the time of publishing. */
const ROOM_AT = 0
const NUMBER_AT = 4
const TIME_AT = 8
/** Smallest payload. */
export const HEAD_BYTES = 16

/** Messages go out in bunches this often. */
const TURN_MS = 2
const US_PER_MS = 1_000

/** Publishes one message with the number 0 to each room, so that each partition is there before it is measured. */
export async function prepareRooms(
  server: Pick<WebMQServer, 'publish'>,
  { rooms, payloadBytes }: PublishPlan,
): Promise<void> {
  const payload = Buffer.alloc(payloadBytes)
  await Promise.all(rooms.map((room) => server.publish(keyOf(room), payload)))
}

/** Publishes on an absolute schedule: a late message does not delay later ones. */
export async function publishRooms(
  server: Pick<WebMQServer, 'publish'>,
  { rooms, perSecond, durationMs, payloadBytes }: PublishPlan,
): Promise<PublishReport> {
  const startUs = nowUs()
  const count = Math.floor((perSecond * durationMs) / 1_000)
  const pending = new Set<Promise<unknown>>()
  const payload = Buffer.alloc(payloadBytes)
  let refusedCount = 0
  let maxLateUs = 0
  for (let sent = 0; sent < count; ) {
    const dueUs = startUs + (sent * 1_000_000) / perSecond
    const currentUs = nowUs()
    if (currentUs < dueUs) {
      await sleep(TURN_MS)
      continue
    }
    maxLateUs = Math.max(maxLateUs, currentUs - dueUs)
    const room = rooms[sent % rooms.length] as number
    payload.writeUInt32LE(room, ROOM_AT)
    payload.writeUInt32LE(Math.floor(sent / rooms.length) + 1, NUMBER_AT)
    payload.writeDoubleLE(currentUs, TIME_AT)
    // The payload is copied before the call returns.
    const published: Promise<unknown> = server.publish(keyOf(room), payload).then(
      () => pending.delete(published),
      () => {
        pending.delete(published)
        refusedCount++
      },
    )
    pending.add(published)
    sent++
  }
  await Promise.all(pending)
  return { publishedCount: count - refusedCount, refusedCount, maxLateMs: maxLateUs / US_PER_MS }
}

/** Counts what the handlers of a node get, and how late. */
export class RoomReceiver {
  readonly #lastNumbers = new Map<number, number>()
  #latency = createLatencyHistogram()
  #deliveredCount = 0
  #missedCount = 0
  #disorderCount = 0

  get counts() {
    return {
      deliveredCount: this.#deliveredCount,
      missedCount: this.#missedCount,
      disorderCount: this.#disorderCount,
    }
  }

  /** Latencies since the last call. */
  takeLatency(): LatencySummary {
    const summary = summarizeLatency(this.#latency)
    this.#latency = createLatencyHistogram()
    return summary
  }

  take(payload: Buffer): void {
    const room = payload.readUInt32LE(ROOM_AT)
    const number = payload.readUInt32LE(NUMBER_AT)
    if (number === 0) return
    recordUs(this.#latency, nowUs() - payload.readDoubleLE(TIME_AT))
    const expected = (this.#lastNumbers.get(room) ?? 0) + 1
    this.#deliveredCount++
    if (number < expected) {
      this.#disorderCount++
      return
    }
    this.#missedCount += number - expected
    this.#lastNumbers.set(room, number)
  }
}
