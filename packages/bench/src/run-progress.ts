import { setTimeout as sleep } from 'node:timers/promises'
import { RateMeter } from './measure/rate-meter.js'
import type { Progress } from './progress.js'
import { formatCompact } from './report/format.js'

/** Live figures of work in progress. */
export interface WorkInSight {
  /** How long it should take; unknown work shows no share. */
  readonly expectedMs?: number
  /** Counts since the start of the work, by their unit, such as `deliveries`; shown as rates. */
  readonly counts?: () => Readonly<Record<string, number>>
}

/** Clock and timers of a run's progress; outside of tests the process's own. */
export interface RunProgressOptions {
  /** Milliseconds. */
  readonly now?: () => number
  readonly sleep?: (ms: number) => Promise<unknown>
}

const TICK_MS = 250

/**
 * The progress of a run of many similar steps, such as one target at one tier: the step, its phase, the rates now, and
 * the time left if each remaining step takes as long as the average so far.
 */
export class RunProgress {
  readonly #progress: Progress
  readonly #stepCount: number
  readonly #now: () => number
  readonly #sleep: (ms: number) => Promise<unknown>
  readonly #startMs: number
  #stepStartMs: number
  /** Of the current step, from 1. */
  #step = 0
  #phase = ''

  constructor(
    progress: Progress,
    stepCount: number,
    { now = Date.now, sleep: wait = sleepUnref }: RunProgressOptions = {},
  ) {
    this.#progress = progress
    this.#stepCount = stepCount
    this.#now = now
    this.#sleep = wait
    this.#startMs = now()
    this.#stepStartMs = this.#startMs
  }

  /** Enters the next step and ends the previous one. @param name Such as `uws, 1,000 subscribers, round 2`. */
  step(name: string): void {
    this.#step += 1
    this.#stepStartMs = this.#now()
    this.#phase = ''
    this.#progress.phase(`[${this.#step}/${this.#stepCount}] ${name}`)
  }

  phase(name: string): void {
    this.#phase = name
    this.#show(0, '')
  }

  /** Reports the progress of the phase in its own words. @param ratio Of the phase, 0 to 1. */
  update(ratio: number, detail: string): void {
    this.#show(ratio, detail)
  }

  note(text: string): void {
    this.#progress.note(text)
  }

  /** Shows time and rates until the work settles, then settles likewise. */
  async during<T>(work: Promise<T>, { expectedMs, counts }: WorkInSight = {}): Promise<T> {
    const meters = new Map<string, RateMeter>()
    const startMs = this.#now()
    let isSettled = false
    const settled = work.then(
      () => (isSettled = true),
      () => (isSettled = true), // The caller gets the error from `work` itself, below.
    )
    while (!isSettled) {
      const elapsedMs = this.#now() - startMs
      const rates = Object.entries(counts?.() ?? {}).map(([unit, count]) => {
        const meter = meters.get(unit) ?? new RateMeter()
        meters.set(unit, meter)
        const perSecond = meter.read(this.#now(), count)
        return perSecond === null ? '' : `${formatCompact(perSecond)} ${unit}/s`
      })
      const seconds = `${Math.floor(elapsedMs / 1_000)}${expectedMs === undefined ? '' : ` of ${Math.ceil(expectedMs / 1_000)}`} s`
      const ratio = expectedMs === undefined || expectedMs === 0 ? 0 : Math.min(1, elapsedMs / expectedMs)
      this.#show(ratio, [seconds, ...rates.filter((text) => text !== '')].join(', '))
      await Promise.race([settled, this.#sleep(TICK_MS)])
    }
    return await work
  }

  done(): void {
    this.#progress.done()
  }

  #show(ratio: number, detail: string): void {
    const left = this.#leftText()
    const parts = [`${this.#phase}${detail === '' ? '' : ` ${detail}`}`, ...(left === '' ? [] : [left])]
    // A phase knows its own progress but not its share of the step, so the bar counts steps and moves within them.
    const ratioOfStep = this.#stepCount === 1 ? ratio : 0
    this.#progress.update((Math.max(0, this.#step - 1) + ratioOfStep) / this.#stepCount, parts.join(' · '))
  }

  #leftText(): string {
    const doneCount = this.#step - 1
    if (doneCount < 1) return ''
    const meanMs = (this.#stepStartMs - this.#startMs) / doneCount
    const inStepMs = Math.min(meanMs, this.#now() - this.#stepStartMs)
    return `${formatLeft(meanMs * (this.#stepCount - doneCount) - inStepMs)} left`
  }
}

function formatLeft(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.ceil(seconds / 60)} min`
  return `${Math.floor(seconds / 3_600)} h ${Math.ceil((seconds % 3_600) / 60)} min`
}

/** A pending tick does not keep the process alive. */
async function sleepUnref(ms: number): Promise<unknown> {
  return await sleep(ms, undefined, { ref: false })
}
