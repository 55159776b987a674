import { byClient, type ConnectionRecord, type FleetLog, STREAM_NODE } from './log.js'
import type { FaultWindow } from './observation.js'

/** A connection that ended in a window, and the next one of its client. */
export interface Reconnect {
  readonly last: ConnectionRecord
  readonly next: ConnectionRecord
  /** When the last one stopped working. */
  readonly lostUs: number
}

/** Time until something worked again, in milliseconds; `null`: nothing was away, or nobody tried. */
export interface Recovery {
  /**
   * Nodes were broken: from there until a user who was connected to one of them got a message on another node. The way
   * to the broker was broken: from its repair to the next message.
   */
  readonly deliveryMs: number | null
  /** Likewise until a publish was accepted. */
  readonly publishMs: number | null
}

/** The reconnects of a window, by client. */
export function reconnectsOf(connections: readonly ConnectionRecord[], window: FaultWindow): Reconnect[] {
  const wasBroken = brokenIn(window)
  return [...byClient(connections).values()].flatMap((own) =>
    own.flatMap((last, index): Reconnect[] => {
      const next = own[index + 1]
      const { endedUs } = last
      if (next === undefined || endedUs === null || endedUs < window.startUs || endedUs >= window.endUs) return []
      // A node that was killed or stopped serves nobody from then on, whenever its clients notice.
      const isDeaf = window.breaks === 'one-node' && wasBroken(last)
      return [{ last, next, lostUs: isDeaf ? Math.max(window.startUs, last.openedUs) : endedUs }]
    }),
  )
}

/** Whether a connection that ended in the window was with a broken node: of an event stream, its end is all that tells. */
function brokenIn({ brokenNodes }: FaultWindow): (connection: ConnectionRecord) => boolean {
  return ({ node }) => node === STREAM_NODE || brokenNodes.includes(node)
}

/** When the clients of a window were served again. */
export function recoveryOf(log: FleetLog, window: FaultWindow, reconnects: readonly Reconnect[]): Recovery {
  const { breaks, startUs, repairedUs, endUs } = window
  if (breaks === null) return { deliveryMs: null, publishMs: null }
  if (breaks === 'broker') {
    const firstAfter = (times: readonly number[]) => {
      const first = times.find((atUs) => atUs >= repairedUs && atUs < endUs)
      return first === undefined ? null : (first - repairedUs) / 1_000
    }
    return { deliveryMs: firstAfter(log.deliveries.map(({ atUs }) => atUs)), publishMs: firstAfter(log.acceptedUs) }
  }
  const users = new Set(log.users.map(({ client }) => client))
  const wasBroken = brokenIn(window)
  const isElsewhere = ({ last, next }: Reconnect) => next.node === STREAM_NODE || next.node !== last.node
  const firstElsewhere = (isOne: (client: string) => boolean) => {
    const times = reconnects
      .filter((one) => isOne(one.last.client) && wasBroken(one.last) && isElsewhere(one))
      .map(({ next }) => next.firstUs)
      .filter((firstUs) => firstUs !== null)
    return times.length === 0 ? null : (Math.min(...times) - startUs) / 1_000
  }
  return {
    deliveryMs: firstElsewhere((client) => users.has(client)),
    publishMs: firstElsewhere((client) => !users.has(client)),
  }
}

/** The most times within any span of this length. */
export function mostWithin(times: readonly number[], spanUs: number): number {
  const sorted = times.toSorted((one, other) => one - other)
  let from = 0
  let most = 0
  for (const [index, atUs] of sorted.entries()) {
    while (atUs - (sorted[from] ?? atUs) >= spanUs) from++
    most = Math.max(most, index - from + 1)
  }
  return most
}
