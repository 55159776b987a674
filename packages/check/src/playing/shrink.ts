import {
  ACTORS_PER_STREAM,
  type ActorStep,
  type ListenerPlan,
  type PublisherPlan,
  type ReaderPlan,
  type Schedule,
  type Step,
} from './schedule.js'

export interface ShrinkOptions<S> {
  /** Whether a smaller schedule fails in the same way. */
  readonly fails: (schedule: S) => Promise<boolean>
  /** Schedules that lack something, those that lack most first. */
  readonly smallerThan: (schedule: S) => Iterable<S>
  readonly maxTries: number
  readonly maxMs: number
}

/** A run goes on for so long after its last step. */
const REST_MS = 2_500

/**
 * Looks for a smaller schedule that still fails: without steps, without actors, with fewer listens, shorter. What fails
 * by chance may pass a try, so the result is not always the smallest.
 */
export async function shrink<S>(schedule: S, { fails, smallerThan, maxTries, maxMs }: ShrinkOptions<S>): Promise<S> {
  const deadline = Date.now() + maxMs
  let smallest = schedule
  let tries = 0
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false
    for (const candidate of smallerThan(smallest)) {
      if (tries >= maxTries || Date.now() >= deadline) return smallest
      tries++
      if (!(await fails(candidate))) continue
      smallest = candidate
      isSmaller = true
      break
    }
  }
  return smallest
}

/** Schedules that lack something, those that lack most first. */
export function* smallerThan(schedule: Schedule): Generator<Schedule> {
  const { steps, listeners, publishers, readers, memberCount = 0, streamCount = 0, lengthMs } = schedule
  const middle = Math.ceil(steps.length / 2)
  if (steps.length > 1) {
    yield { ...schedule, steps: steps.slice(0, middle) }
    yield { ...schedule, steps: steps.slice(middle) }
  }
  if (readers.length > 0) yield { ...schedule, readers: [] }
  if (memberCount > 0) yield { ...schedule, memberCount: 0 }
  if (streamCount > 1)
    yield {
      ...schedule,
      streamCount: 1,
      steps: steps.filter((step) => !isOfStreams(step) || step.actor < ACTORS_PER_STREAM),
    }
  for (const index of steps.keys()) yield { ...schedule, steps: without(steps, index) }
  if (listeners.length > 1) {
    for (const index of listeners.keys()) {
      yield {
        ...schedule,
        listeners: without<ListenerPlan>(listeners, index),
        steps: withoutActor(steps, index, 'listen'),
      }
    }
  }
  if (publishers.length > 1) {
    for (const index of publishers.keys()) {
      yield {
        ...schedule,
        publishers: without<PublisherPlan>(publishers, index),
        steps: withoutActor(steps, index, 'publisher'),
      }
    }
  }
  for (const [index, { listens }] of listeners.entries()) {
    if (listens.length < 2) continue
    for (const left of [
      listens.slice(0, Math.ceil(listens.length / 2)),
      listens.slice(Math.ceil(listens.length / 2)),
    ]) {
      yield {
        ...schedule,
        listeners: listeners.map((each, other) => (other === index ? { ...each, listens: left } : each)),
      }
    }
  }
  const shortMs = Math.max(0, ...steps.map(({ atMs, forMs }) => atMs + forMs)) + REST_MS
  if (shortMs < lengthMs) yield { ...schedule, lengthMs: shortMs }
}

function without<T extends Step | ListenerPlan | PublisherPlan | ReaderPlan>(all: readonly T[], index: number): T[] {
  return all.filter((_, other) => other !== index)
}

/** The actors behind the one that is left out move up. */
function withoutActor(steps: readonly Step[], index: number, kind: 'listen' | 'publisher'): Step[] {
  return steps.flatMap((step) => {
    if (!('actor' in step) || !step.what.includes(kind)) return [step]
    if (step.actor === index) return []
    return [{ ...step, actor: step.actor > index ? step.actor - 1 : step.actor }]
  })
}

function isOfStreams(step: Step): step is Step & ActorStep {
  return /writer|viewer|stream/.test(step.what) && 'actor' in step
}
