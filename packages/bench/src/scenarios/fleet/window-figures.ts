import type { ConnectionRecord, FleetLog, UserRecord } from './log.js'
import type { FaultWindow, FleetObservation, UsageSample } from './observation.js'

/** What clients saw in one window. */
export interface WindowFigures {
  readonly publishedCount: number
  /** Publishes that were refused and tried again, with the same id. */
  readonly retriedCount: number
  readonly failedPublishCount: number
  /** Accepted messages, once for each user who listened. */
  readonly expectedCount: number
  readonly deliveredCount: number
  /** Missing without a told gap. */
  readonly lostCount: number
  /** Missing, and the listener was told so. */
  readonly missedInGapCount: number
  readonly duplicateCount: number
  readonly reorderedCount: number
  readonly toldGapCount: number
  /** From the beginning of the fault until it was repaired. */
  readonly faultMs: number | null
  /**
   * A node was broken: from there until a user who was connected to it got a message on another node. The way to the
   * broker was broken: from its repair to the next message.
   */
  readonly deliveryMs: number | null
  /** Likewise until a publish was accepted. */
  readonly publishMs: number | null
  readonly reconnectCount: number
  /** Time that each client was without a working connection. */
  readonly reconnectMs: Percentiles
  /** From the beginning of the fault to the last reconnect. */
  readonly allConnectedMs: number | null
  readonly mostOpenedIn100Ms: number
  readonly mostOpenedIn1S: number
  readonly latencyMs: Percentiles
  readonly nodeCpuSeconds: number | null
  readonly brokerCpuSeconds: number | null
  readonly balancerCpuSeconds: number | null
  readonly clientCpuSeconds: number | null
  /** Some of the messages that were lost, doubled or out of order, in words. */
  readonly examples: readonly string[]
}

/** Milliseconds; `null`: there is no value. */
export interface Percentiles {
  readonly p50: number | null
  readonly p99: number | null
  readonly max: number | null
}

const MAX_EXAMPLES = 20

/** Counts what belongs to a window: messages by the time at which they arose, everything else by its own time. */
export function windowFigures(observation: FleetObservation, window: FaultWindow): WindowFigures {
  const { log, usage } = observation
  const isWithin = (atUs: number) => atUs >= window.startUs && atUs < window.endUs
  const { expectedCount, lost, missedInGapCount } = countMessages(log, isWithin)
  const irregular = log.irregularities.filter(({ createdUs }) => isWithin(createdUs))
  const reconnects = reconnectsOf(log.connections, window)
  const openedUs = reconnects.map(({ next }) => next.openedUs)
  const cpuSeconds = (member: keyof Omit<UsageSample, 'atUs'>) => usedBetween(usage, member, window)
  return {
    publishedCount: [...log.publications.values()].flat().filter(({ createdUs }) => isWithin(createdUs)).length,
    retriedCount: log.retriedUs.filter(isWithin).length,
    failedPublishCount: log.failures.filter(({ atUs }) => isWithin(atUs)).length,
    expectedCount,
    deliveredCount: expectedCount - lost.length - missedInGapCount,
    lostCount: lost.length,
    missedInGapCount,
    duplicateCount: irregular.filter(({ kind }) => kind === 'doubled').length,
    reorderedCount: irregular.filter(({ kind }) => kind === 'out of order').length,
    toldGapCount: log.gaps.filter(({ atUs }) => isWithin(atUs)).length,
    faultMs: window.breaks === null ? null : (window.repairedUs - window.startUs) / 1_000,
    ...recoveryOf(log, window, reconnects),
    reconnectCount: reconnects.length,
    reconnectMs: percentiles(reconnects.map(({ lostUs, next }) => (next.openedUs - lostUs) / 1_000)),
    allConnectedMs: openedUs.length === 0 ? null : (Math.max(...openedUs) - window.startUs) / 1_000,
    mostOpenedIn100Ms: mostWithin(openedUs, 100_000),
    mostOpenedIn1S: mostWithin(openedUs, 1_000_000),
    latencyMs: percentiles(
      log.deliveries.filter(({ atUs }) => isWithin(atUs)).map(({ latencyUs }) => latencyUs / 1_000),
    ),
    nodeCpuSeconds: cpuSeconds('nodes'),
    brokerCpuSeconds: cpuSeconds('broker'),
    balancerCpuSeconds: cpuSeconds('balancer'),
    clientCpuSeconds: cpuSeconds('clients'),
    examples: [
      ...lost,
      ...irregular.map(
        ({ kind, client, key, number, createdUs }) => `${kind}: ${nameOf(client, key, number, createdUs)}`,
      ),
    ].slice(0, MAX_EXAMPLES),
  }

  function nameOf(client: string, key: string, number: number, createdUs: number): string {
    return `${client}, ${key} ${number}, published ${((createdUs - window.startUs) / 1_000).toFixed(0)} ms after the fault`
  }

  function countMessages(log: FleetLog, isCounted: (createdUs: number) => boolean) {
    let expectedCount = 0
    let missedInGapCount = 0
    const lost: string[] = []
    const gapsOf = new Map<string, number[]>()
    for (const { client, atUs } of log.gaps) gapsOf.set(client, [...(gapsOf.get(client) ?? []), atUs])
    for (const user of log.users) {
      for (const key of user.keys) {
        const publications = log.publications.get(key) ?? []
        for (let number = firstExpected(user, key, publications); number < publications.length; number++) {
          const publication = publications[number]
          if (publication?.isAccepted !== true || !isCounted(publication.createdUs)) continue
          expectedCount++
          const missing = missingAt(user, key, number)
          if (missing === undefined) continue
          const { beforeUs, afterUs } = missing
          const isTold = (gapsOf.get(user.client) ?? []).some(
            (gapUs) => gapUs >= beforeUs && gapUs <= afterUs && publication.createdUs <= gapUs,
          )
          if (isTold) missedInGapCount++
          else lost.push(`lost: ${nameOf(user.client, key, number, publication.createdUs)}`)
        }
      }
    }
    return { expectedCount, missedInGapCount, lost }
  }
}

/** A user gets all messages from its first one on, and those that were published after its listen was accepted. */
function firstExpected(user: UserRecord, key: string, publications: readonly { readonly startedUs: number | null }[]) {
  const after = publications.findIndex(({ startedUs }) => startedUs !== null && startedUs > user.readyUs)
  const first = user.received.get(key)?.first ?? publications.length
  return Math.min(first, after === -1 ? publications.length : after)
}

/** Times of the arrivals before and after a missing message; `undefined`: it is not missing. */
function missingAt(user: UserRecord, key: string, number: number) {
  const received = user.received.get(key)
  const end = { beforeUs: user.readyUs, afterUs: Number.POSITIVE_INFINITY }
  if (received === undefined || number < received.first || number >= received.next) return end
  return received.holes.find(({ from, to }) => number >= from && number < to)
}

/** A connection that ended in the window, and the next one of its client. */
interface Reconnect {
  readonly last: ConnectionRecord
  readonly next: ConnectionRecord
  /** When the last one stopped working. */
  readonly lostUs: number
}

function reconnectsOf(connections: readonly ConnectionRecord[], window: FaultWindow): Reconnect[] {
  const byClient = new Map<string, ConnectionRecord[]>()
  for (const connection of connections) {
    byClient.set(connection.client, [...(byClient.get(connection.client) ?? []), connection])
  }
  return [...byClient.values()].flatMap((own) =>
    own.flatMap((last, index): Reconnect[] => {
      const next = own[index + 1]
      const { endedUs, node } = last
      if (next === undefined || endedUs === null || endedUs < window.startUs || endedUs >= window.endUs) return []
      // A node that was killed or stopped serves nobody from then on, whenever its clients notice.
      const isDeaf = typeof window.breaks === 'number' && window.brokenNodes.includes(node)
      return [{ last, next, lostUs: isDeaf ? Math.max(window.startUs, last.openedUs) : endedUs }]
    }),
  )
}

function recoveryOf(
  log: FleetLog,
  { breaks, brokenNodes, startUs, repairedUs, endUs }: FaultWindow,
  reconnects: readonly Reconnect[],
) {
  if (breaks === null) return { deliveryMs: null, publishMs: null }
  if (breaks === 'broker') {
    const firstAfter = (times: readonly number[]) => {
      const first = times.find((atUs) => atUs >= repairedUs && atUs < endUs)
      return first === undefined ? null : (first - repairedUs) / 1_000
    }
    return { deliveryMs: firstAfter(log.deliveries.map(({ atUs }) => atUs)), publishMs: firstAfter(log.acceptedUs) }
  }
  const users = new Set(log.users.map(({ client }) => client))
  const firstElsewhere = (isOne: (client: string) => boolean) => {
    const times = reconnects
      .filter(({ last, next }) => isOne(last.client) && brokenNodes.includes(last.node) && next.node !== last.node)
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
  const sorted = times.toSorted((a, b) => a - b)
  let from = 0
  let most = 0
  for (const [index, atUs] of sorted.entries()) {
    while (atUs - (sorted[from] ?? atUs) >= spanUs) from++
    most = Math.max(most, index - from + 1)
  }
  return most
}

/** Percentiles by the nearest rank. */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort()
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

function usedBetween(
  usage: readonly UsageSample[],
  member: keyof Omit<UsageSample, 'atUs'>,
  { startUs, endUs }: FaultWindow,
): number | null {
  const from = usedAt(usage, member, startUs)
  const to = usedAt(usage, member, endUs)
  return from === null || to === null ? null : to - from
}

/** CPU seconds up to a moment, on a line between two samples; `null` where unknown. */
export function usedAt(
  usage: readonly UsageSample[],
  member: keyof Omit<UsageSample, 'atUs'>,
  atUs: number,
): number | null {
  const afterIndex = usage.findIndex((sample) => sample.atUs >= atUs)
  const after = afterIndex === -1 ? usage.at(-1) : usage[afterIndex]
  const before = afterIndex > 0 ? usage[afterIndex - 1] : after
  const [from, to] = [before?.[member] ?? null, after?.[member] ?? null]
  if (before === undefined || after === undefined || from === null || to === null) return null
  const share = after.atUs === before.atUs ? 0 : (atUs - before.atUs) / (after.atUs - before.atUs)
  return from + (to - from) * Math.min(1, Math.max(0, share))
}
