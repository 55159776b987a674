import type { LinkFault, Stream } from './link.js'
import {
  ACTORS_PER_STREAM,
  type ActorStep,
  type BrokerStep,
  type LinkStep,
  type NodeStep,
  type Schedule,
  type Step,
} from './schedule.js'
import type { SeededRandom } from './seeded-random.js'

/** What steps can be done to, and when. */
export interface Scene {
  readonly random: SeededRandom
  readonly broker: Schedule['broker']
  readonly nodeCount: number
  /** Servers of the broker; 0: there is none. */
  readonly partCount: number
  readonly hasBrokerLinks: boolean
  readonly publisherCount: number
  readonly listenerCount: number
  /** Keys of streams. */
  readonly streamCount: number
  readonly fromMs: number
  readonly untilMs: number
}

export interface Span {
  readonly atMs: number
  readonly forMs: number
}

const MIN_HOLD_MS = 200
/** Heartbeats find a dead link within two of them; some faults are shorter than that, some longer. */
const MAX_HOLD_MS = 6_000
const MAX_STALL_MS = 3_000
const STREAM_CHOICES: readonly (readonly Stream[])[] = [['upstream', 'downstream'], ['upstream'], ['downstream']]

/** Some time within the scene. */
export function drawSpan({ random, fromMs, untilMs }: Scene, maxMs = MAX_HOLD_MS): Span {
  const forMs = random.integer(MIN_HOLD_MS, Math.max(MIN_HOLD_MS, Math.min(maxMs, (untilMs - fromMs) * 0.6)))
  return { atMs: random.integer(fromMs, Math.max(fromMs, untilMs - forMs)), forMs }
}

/** Two spans, of which the second begins and mostly ends within the first. */
export function drawPair(scene: Scene): [outer: Span, inner: Span] {
  const { random, fromMs, untilMs } = scene
  const forMs = random.integer(Math.min(1_500, untilMs - fromMs), Math.min(MAX_HOLD_MS, untilMs - fromMs))
  const atMs = random.integer(fromMs, Math.max(fromMs, untilMs - forMs))
  const innerAtMs = atMs + random.integer(100, Math.max(100, Math.round(forMs * 0.6)))
  return [
    { atMs, forMs },
    { atMs: innerAtMs, forMs: random.integer(MIN_HOLD_MS, Math.max(MIN_HOLD_MS, atMs + forMs - innerAtMs)) },
  ]
}

export function drawLinkFault(random: SeededRandom): LinkFault {
  switch (random.pick(['cut', 'stall', 'stall', 'swallow', 'swallow', 'latency', 'throttle'] as const)) {
    case 'cut':
      return { fault: 'cut' }
    case 'stall':
      return { fault: 'stall', streams: random.pick(STREAM_CHOICES) }
    case 'swallow':
      return { fault: 'swallow', streams: random.pick(STREAM_CHOICES) }
    case 'latency':
      return { fault: 'latency', delayMs: random.pick([20, 100, 300]) }
    case 'throttle':
      return { fault: 'throttle', bytesPerSecond: random.pick([2_000, 10_000, 50_000]) }
  }
}

/** Of a node to its broker, to another node, or to its clients. */
function drawLink(scene: Scene): Pick<LinkStep, 'what' | 'link'> {
  const { random, nodeCount } = scene
  const clients = { what: 'client-link', link: random.integer(0, nodeCount - 1) } as const
  if (random.chance(0.3)) return clients
  if (scene.hasBrokerLinks) return { what: 'broker-link', link: random.integer(0, nodeCount - 1) }
  if (scene.broker === 'mesh')
    return { what: 'peer-link', link: random.integer(0, (nodeCount * (nodeCount - 1)) / 2 - 1) }
  return clients
}

export function drawLinkStep(scene: Scene): Step {
  return { ...drawSpan(scene), ...drawLink(scene), ...drawLinkFault(scene.random) } as Step
}

export function drawNodeStep(scene: Scene): Span & NodeStep {
  const { random, nodeCount } = scene
  const what = random.pick(['kill-node', 'stop-node', 'freeze-node'] as const)
  return { ...drawSpan(scene), what, node: random.integer(0, nodeCount - 1) }
}

export function drawBrokerStep(scene: Scene): Span & BrokerStep {
  const { random, partCount } = scene
  const what = random.pick(['kill-broker', 'restart-broker', 'freeze-broker'] as const)
  return { ...drawSpan(scene), what, part: random.integer(0, partCount - 1) }
}

/** Makes a node fall behind the others: its link to the broker stands still, or, where it has none, the node. */
export function drawBehind({ random, hasBrokerLinks }: Scene, span: Span, node: number): Step {
  if (!hasBrokerLinks) return { ...span, what: 'freeze-node', node }
  const streams = random.pick(STREAM_CHOICES)
  return { ...span, what: 'broker-link', link: node, fault: random.pick(['stall', 'stall', 'swallow']), streams }
}

/** With a time to reconnect shorter than what is left of a node's lease: until then others must not take it for gone. */
const MAX_SILENCE_MS = 3_400
const SILENCE_PAUSE_MS = 3_000

/** A node cannot be reached for some time, again and again: cut off, standing still, or without its broker. */
export function drawTogetherSteps(scene: Scene, node: number): Step[] {
  const { random, nodeCount, partCount, hasBrokerLinks, fromMs, untilMs } = scene
  const steps: Step[] = []
  for (let atMs = fromMs; atMs + MIN_HOLD_MS < untilMs; ) {
    const forMs = random.integer(MIN_HOLD_MS, Math.min(MAX_SILENCE_MS, untilMs - atMs))
    const span = { atMs, forMs }
    const cut = { ...span, fault: 'cut' } as const
    const what = random.pick(['freeze', 'cut', ...(partCount > 0 ? (['broker'] as const) : [])])
    if (what === 'broker') steps.push({ ...span, what: random.pick(['kill-broker', 'restart-broker']), part: 0 })
    else if (what === 'cut' && hasBrokerLinks) steps.push({ ...cut, what: 'broker-link', link: node })
    // The links of node 0 to others come first.
    else if (what === 'cut' && scene.broker === 'mesh' && node === 0) {
      for (const link of [...Array(nodeCount - 1).keys()]) steps.push({ ...cut, what: 'peer-link', link })
    } else steps.push({ ...span, what: 'freeze-node', node })
    atMs += forMs + SILENCE_PAUSE_MS + random.integer(0, SILENCE_PAUSE_MS)
  }
  return steps
}

/** What clients do by themselves. */
export function drawActorSteps(scene: Scene, count: number): (Span & ActorStep)[] {
  const { random, listenerCount, publisherCount } = scene
  return Array.from({ length: count }, () => {
    const what = random.pick([
      'cut-listener',
      'cut-listener',
      'stall-listener',
      'move-listener',
      'move-listener',
      'move-listener-during-replay',
      'relisten',
      'cut-publisher',
      'stall-publisher',
    ] as const)
    const count = what.includes('publisher') ? publisherCount : listenerCount
    return { ...drawSpan(scene, MAX_STALL_MS), what, actor: random.integer(0, count - 1) }
  })
}

/** What writers and viewers of streams do by themselves. */
export function drawStreamSteps(scene: Scene, count: number): (Span & ActorStep)[] {
  const { random, streamCount } = scene
  return Array.from({ length: count }, () => {
    const what = random.pick([
      ...(['cut-writer', 'cut-writer', 'silence-writer', 'cut-viewer', 'cut-viewer', 'stall-viewer'] as const),
      ...(['stop-stream', 'stop-stream', 'stop-stream'] as const),
    ])
    return { ...drawSpan(scene), what, actor: random.integer(0, streamCount * ACTORS_PER_STREAM - 1) }
  })
}

/** A listener reads nothing for some time, then goes elsewhere: what it has not read is replayed. */
export function drawAbsence(scene: Scene, what: ActorStep['what'], actor: number): Step[] {
  const span = drawSpan(scene, MAX_STALL_MS)
  const endMs = span.atMs + span.forMs
  return [
    { ...span, what: 'stall-listener', actor },
    { atMs: endMs - 20, forMs: 0, what, actor },
  ]
}
