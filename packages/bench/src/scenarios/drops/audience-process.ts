import { setTimeout as sleep } from 'node:timers/promises'
import { addCounts, count, type HeardEvent, noCounts, type Published } from 'webmq-check/systems'
import { nowUs } from '../../measure/clock.js'
import { Member } from './member.js'
import { type AudienceCommand, type AudienceEvent, type AudienceLog, type AudiencePlan, roomOf } from './messages.js'
import { systemOf } from './peers.js'

/** Process that plays some of the clients, each by the library of its system. */
if (process.send === undefined) throw new Error('audience-process runs as a child only')

const STATUS_INTERVAL_MS = 100
/** Handshakes at once: a server's backlog has room for those of all processes. */
const COMING_COUNT = 50
const MAX_EXAMPLES = 5

let members: Member[] = []
let readyCount = 0
/** When all clients listened. */
let idle = { atUs: nowUs(), cpuUs: cpuUs() }

process.on('message', (command: AudienceCommand) => {
  if (command.type === 'plan') come(command.plan).catch(failed)
  if (command.type === 'drops') for (const member of members) member.play(command.drops)
  if (command.type === 'finish') finish(command.published)
})
process.once('disconnect', () => process.exit())

async function come(plan: AudiencePlan): Promise<void> {
  const { peer, ports, clients, rooms } = plan
  const system = await systemOf(peer)
  members = Array.from({ length: clients }, (_, number) => new Member(number, roomOf(number % rooms))).filter(
    ({ number }) => number % plan.processCount === plan.process,
  )
  setInterval(report, STATUS_INTERVAL_MS)
  const coming = members.values()
  const lane = async () => {
    for (const member of coming) {
      await member.listen(system, ports[member.number % ports.length] ?? 0)
      readyCount++
    }
  }
  await Promise.all(Array.from({ length: COMING_COUNT }, lane))
  idle = { atUs: nowUs(), cpuUs: cpuUs() }
  post({ type: 'ready' })
}

function report(): void {
  let awayCount = 0
  let heardCount = 0
  for (const { isAway, events } of members) {
    if (isAway) awayCount++
    heardCount += events.length
  }
  post({ type: 'status', readyCount, awayCount, heardCount })
}

function finish(published: readonly Published[]): void {
  const usedUs = cpuUs() - idle.cpuUs
  const busiestShare = usedUs / (nowUs() - idle.atUs)
  const byChannel = new Map<string, Published[]>()
  for (const message of published) {
    const own = byChannel.get(message.channel)
    if (own === undefined) byChannel.set(message.channel, [message])
    else own.push(message)
  }
  const counts = noCounts()
  const examples: string[] = []
  let wholeCount = 0
  for (const { number, channel, events, isAway } of members) {
    const own = byChannel.get(channel) ?? []
    // A client that is away knows it: what it missed is not lost in silence.
    const ends: HeardEvent[] = isAway ? [{ what: 'told', isRecovered: false }] : []
    const listener = { name: `client ${number}`, events: [...events, ...ends] }
    const counted = count({ published: own, listeners: [listener] }, (wrong) => {
      if (examples.length < MAX_EXAMPLES) examples.push(`${wrong.rule}: ${wrong.listener}, ${channel} ${wrong.number}`)
    })
    counted.toldGaps -= ends.length
    addCounts(counts, counted)
    const { toldLost, silentlyLost, doubled, inverted } = counted
    if (toldLost + silentlyLost + doubled + inverted === 0) wholeCount++
  }
  const log: AudienceLog = {
    counts,
    awayMs: members.flatMap(({ awayMs }) => awayMs),
    backMs: members.flatMap(({ backMs }) => backMs),
    missingCount: members.filter(({ isAway }) => isAway).length,
    wholeCount,
    examples,
    cpuSeconds: usedUs / 1_000_000,
    busiestShare,
  }
  post({ type: 'log', log })
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function failed(error: unknown): Promise<void> {
  post({ type: 'failed', reason: error instanceof Error ? error.message : String(error) })
  await sleep(STATUS_INTERVAL_MS)
  process.exit(1)
}

function post(event: AudienceEvent): void {
  process.send?.(event)
}
