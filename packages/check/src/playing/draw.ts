import type { Start } from '../actors/listener.js'
import { matches } from '../judging/keys.js'
import {
  KEYS,
  type ListenerPlan,
  LOGGED_PATTERNS,
  type Logged,
  PATTERNS,
  type PublisherPlan,
  type Route,
  type Schedule,
} from './schedule.js'
import { SeededRandom } from './seeded-random.js'
import { drawActorSteps, type Scene } from './steps.js'
import type { Theme } from './themes.js'

/** Faults begin after this, when the first messages have come. */
const LEAD_MS = 1_000
/** The part of a run in which faults may be: the rest shows that everybody has recovered. */
const FAULT_SHARE = 0.75
const MAX_PUBLISHERS = 3
const MAX_LISTENERS = 4
export const DEFAULT_MESSAGES_PER_SECOND = 60
const LISTEN_COUNT = [1, 4] as const
const LOG_MESSAGES = 10_000

/** Those that match no stream: its messages are looked at by its viewers. */
const NARROW = PATTERNS.filter((pattern) => pattern !== '#')

/** What is played on. */
export interface Setting extends Pick<Scene, 'broker' | 'nodeCount' | 'partCount' | 'hasBrokerLinks'> {
  readonly themes: readonly Theme[]
  /** Missing: left to chance. */
  readonly logged?: Logged
  /** Of all publishers together. Default: what leaves room for four schedules on two cores. */
  readonly messagesPerSecond?: number
}

/**
 * The schedule of a seed.
 * @throws {Error} if there is no theme.
 */
export function draw(setting: Setting, seed: number, lengthMs: number): Schedule {
  const {
    broker,
    nodeCount,
    themes,
    partCount,
    hasBrokerLinks,
    messagesPerSecond = DEFAULT_MESSAGES_PER_SECOND,
  } = setting
  const random = new SeededRandom(broker, seed)
  // Neighbouring seeds have different themes, so that few schedules have many of them.
  const theme = themes[seed % themes.length]
  if (theme === undefined) throw new Error(`no theme fits ${broker}`)
  const wishes = theme.wishes?.(random) ?? {}
  const logged = setting.logged ?? wishes.logged ?? random.pick(['all', 'half', 'half', 'none'] as const)
  const publisherCount = random.integer(1, MAX_PUBLISHERS)
  const listenerCount = random.integer(2, MAX_LISTENERS)
  const { streamCount = 0 } = wishes
  const scene: Scene = {
    random,
    broker,
    nodeCount,
    partCount,
    hasBrokerLinks,
    publisherCount,
    listenerCount,
    streamCount,
    fromMs: LEAD_MS,
    untilMs: Math.max(LEAD_MS + 1_000, lengthMs * FAULT_SHARE),
  }
  const route = () => drawRoute(random, nodeCount)
  return {
    seed,
    broker,
    theme: theme.name,
    lengthMs,
    logged,
    server: {
      historyMaxMessages: LOG_MESSAGES,
      brokerHeartbeatMs: random.pick([1_000, 2_000]),
      ...wishes.server,
    },
    publishers: repeat(publisherCount, () => ({
      ...drawPublisher(random, messagesPerSecond / publisherCount),
      ...route(),
      ...wishes.publisher,
    })),
    listeners: repeat(listenerCount, () => ({
      ...drawListener(random, wishes.listenCount ?? LISTEN_COUNT, streamCount > 0 ? NARROW : PATTERNS),
      ...route(),
    })),
    readers:
      logged === 'none' || random.chance(0.4) ? [] : [{ keys: readKeys(random, logged), everyMs: 400, ...route() }],
    // A chance of its own: seeds keep what they were.
    memberCount:
      wishes.members?.count ??
      (broker === 'given' || streamCount > 0 ? 0 : new SeededRandom(broker, seed, 'members').pick([0, 0, 2, 3])),
    ...(wishes.members === undefined ? {} : { memberNode: wishes.members.node }),
    ...(streamCount > 0 ? { streamCount } : {}),
    steps: [...theme.steps(scene), ...drawActorSteps(scene, random.integer(0, 3))].sort(
      (first, second) => first.atMs - second.atMs,
    ),
  }
}

function drawPublisher(random: SeededRandom, perSecond: number): Omit<PublisherPlan, keyof Route> {
  const burstCount = random.pick([1, 1, 2, 5, 12])
  return {
    keys: random.sample(KEYS, random.integer(2, KEYS.length)),
    burstCount,
    everyMs: Math.round((burstCount * 1_000) / perSecond),
    payloadBytes: random.pick([
      [60, 60],
      [60, 400],
      [60, 3_000],
    ] as const),
    noechoShare: random.pick([0, 0.1]),
    twinShare: random.pick([0, 0, 0.05, 0.2]),
    againShare: random.pick([0, 0, 0.05, 0.2]),
    againAfterMs: random.pick([
      [0, 0],
      [0, 0],
      [100, 5_000],
    ] as const),
  }
}

function drawListener(
  random: SeededRandom,
  [min, max]: readonly [number, number],
  among: readonly string[],
): Omit<ListenerPlan, keyof Route> {
  const patterns = random.sample(among, random.integer(min, max))
  return { listens: patterns.map((pattern) => ({ pattern, start: drawStart(random) })) }
}

function drawStart(random: SeededRandom): Start {
  return random.pick<Start>(['now', 'now', { last: random.integer(1, 50) }, { rewindMs: random.integer(1, 3_000) }])
}

function drawRoute(random: SeededRandom, nodeCount: number): Route {
  return { nodes: [random.integer(0, nodeCount - 1)], isSticky: random.chance(0.3) }
}

function readKeys(random: SeededRandom, logged: Logged): string[] {
  return random.sample(
    KEYS.filter((key) => LOGGED_PATTERNS[logged].some((pattern) => matches(pattern, key))),
    2,
  )
}

function repeat<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make)
}
