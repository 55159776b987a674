import { SeededRandom } from '../playing/seeded-random.js'

export const THEMES = ['cut', 'move', 'restart', 'deploy'] as const
export type Theme = (typeof THEMES)[number]

export const LISTENER_COUNT = 3
export const NODE_COUNT = 2

/** What is done, and when. No two steps of one listener or node overlap. */
export interface Schedule {
  readonly seed: number
  readonly theme: Theme
  readonly lengthMs: number
  readonly steps: readonly Step[]
}

export type Step = { readonly atMs: number; readonly forMs: number } & (
  | LinkStep
  /** SIGKILL, and a start after `forMs`. Its listeners wait for it. */
  | { readonly what: 'kill'; readonly node: number }
  /** SIGTERM, and a start when it has ended. Its listeners are sent to the other node until it is ready. */
  | { readonly what: 'roll'; readonly node: number }
)

/** The link of a listener is reset, stalls, or loses all bytes and is then reset. */
export interface LinkStep {
  readonly what: 'cut' | 'stall' | 'swallow'
  readonly listener: number
  /** Whether it is at the other node afterwards. */
  readonly moves: boolean
}

const MIN_FAULT_MS = 100
const MAX_FAULT_MS = 1_200
/** Between two faults of one listener: time to come back. */
const MAX_REST_MS = 1_500

/** The same for the same seed, theme and length, whatever the system is. */
export function drawSchedule(theme: Theme, seed: number, lengthMs: number): Schedule {
  const random = new SeededRandom('elsewhere', theme, seed)
  const steps = STEPS[theme](random, lengthMs)
  return { seed, theme, lengthMs, steps: steps.sort((one, other) => one.atMs - other.atMs) }
}

const STEPS: Readonly<Record<Theme, (random: SeededRandom, lengthMs: number) => Step[]>> = {
  cut: (random, lengthMs) =>
    linkSteps(random, lengthMs, () => ({ what: random.pick(['cut', 'stall', 'swallow'] as const), moves: false })),
  move: (random, lengthMs) =>
    linkSteps(random, lengthMs, () => ({ what: random.pick(['cut', 'swallow'] as const), moves: true })),
  restart: (random, lengthMs) => {
    const node = random.integer(0, NODE_COUNT - 1)
    const half = Math.floor(lengthMs / 2)
    const killAt = (fromMs: number, which: number): Step => {
      const forMs = random.integer(MIN_FAULT_MS, MAX_FAULT_MS)
      return { what: 'kill', node: which, atMs: fromMs + random.integer(0, Math.max(0, half - forMs)), forMs }
    }
    return random.chance(0.5) ? [killAt(0, node), killAt(half, NODE_COUNT - 1 - node)] : [killAt(0, node)]
  },
  deploy: (random, lengthMs) =>
    Array.from({ length: NODE_COUNT }, (_, node): Step => {
      const half = Math.floor(lengthMs / NODE_COUNT)
      return { what: 'roll', node, atMs: node * half + random.integer(0, Math.floor(half / 2)), forMs: 0 }
    }),
}

function linkSteps(random: SeededRandom, lengthMs: number, draw: () => Pick<LinkStep, 'what' | 'moves'>): Step[] {
  const steps: Step[] = []
  for (let listener = 0; listener < LISTENER_COUNT; listener++) {
    let atMs = random.integer(0, MAX_REST_MS)
    for (;;) {
      const forMs = random.integer(MIN_FAULT_MS, MAX_FAULT_MS)
      if (atMs + forMs > lengthMs) break
      steps.push({ ...draw(), listener, atMs, forMs })
      atMs += forMs + random.integer(MIN_FAULT_MS, MAX_REST_MS)
    }
  }
  return steps
}

/** Schedules with fewer steps, those that lack most first. */
export function* fewerSteps(schedule: Schedule): Generator<Schedule> {
  const { steps } = schedule
  const middle = Math.ceil(steps.length / 2)
  if (steps.length < 2) return
  yield { ...schedule, steps: steps.slice(0, middle) }
  yield { ...schedule, steps: steps.slice(middle) }
  if (steps.length > 2)
    for (const index of steps.keys()) yield { ...schedule, steps: steps.filter((_, other) => other !== index) }
}
