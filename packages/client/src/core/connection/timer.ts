import { MAX_TIMER_MS } from '../options.js'

/** Starts the timer anew; without an action, stops it. */
export type Timer = (action?: () => void, ms?: number) => void

/** Makes a timer that is not running. */
export function createTimer(): Timer {
  let timer: ReturnType<typeof setTimeout> | undefined
  return (action, ms = 0) => {
    clearTimeout(timer)
    if (action) timer = setTimeout(action, Math.min(ms, MAX_TIMER_MS))
  }
}
