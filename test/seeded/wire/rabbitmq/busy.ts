import type { Timing } from './lane.js'

/** A broker that has other things to do, now and then. */
interface Pace {
  readonly mostMs: number
  /** Of the calls, how many take up to {@link longMs}. */
  readonly longShare: number
  readonly longMs: number
}

const QUIET: Pace = { mostMs: 2, longShare: 0.005, longMs: 60 }
const BUSY: Pace = { mostMs: 15, longShare: 0.05, longMs: 700 }
const BUSY_SHARE = 0.5
/** Share of the ways from one process to another that take no time at all. */
const SHORT_SHARE = 0.7

/** Times of a broker, which is quiet or busy. Each kind of work has a pace of its own. */
export function timingOf(random: () => number): Timing {
  const paced = () => {
    const { mostMs, longShare, longMs } = random() < BUSY_SHARE ? BUSY : QUIET
    return () => (random() < longShare ? random() * longMs : random() * mostMs)
  }
  const [hop, change, write, confirm] = [paced(), paced(), paced(), paced()]
  return {
    hopMs: () => (random() < SHORT_SHARE ? 0 : hop()),
    changeMs: change,
    writeMs: write,
    confirmMs: () => (random() < SHORT_SHARE ? 0 : confirm()),
  }
}
