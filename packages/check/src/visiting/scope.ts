import { CannotRun } from '../exit-codes.js'
import type { Schedule } from '../playing/schedule.js'

/** What the first word of a key or pattern of a schedule becomes in an installation that others use, too. */
export type Scope = Readonly<Record<'log' | 'live' | '*' | '#', string>>

/** `chat.#` */
const RULE = /^([A-Za-z0-9_-]+\.)+#$/

/**
 * @param logged `all`, `none`, or the pattern of a rule: plain words and `#`.
 * @param word A word that nobody else uses.
 * @throws {CannotRun} for another pattern.
 */
export function scopeOf(logged: string, word: string): Scope {
  if (logged === 'all' || logged === 'none') {
    return { log: `${word}.log`, live: `${word}.live`, '*': `${word}.*`, '#': `${word}.#` }
  }
  if (!RULE.test(logged)) throw new CannotRun(`--logged must be all, none or a pattern such as chat.#, not ${logged}`)
  const rule = `${logged.slice(0, -1)}${word}`
  return { log: rule, live: word, '*': rule, '#': `${rule}.#` }
}

/** A schedule whose keys and patterns are those of a scope. */
export function scoped(schedule: Schedule, scope: Scope): Schedule {
  const place = (key: string) => {
    const [first = '', ...rest] = key.split('.')
    return [scope[first as keyof Scope], ...rest].join('.')
  }
  return {
    ...schedule,
    publishers: schedule.publishers.map((plan) => ({ ...plan, keys: plan.keys.map(place) })),
    readers: schedule.readers.map((plan) => ({ ...plan, keys: plan.keys.map(place) })),
    listeners: schedule.listeners.map((plan) => ({
      ...plan,
      listens: plan.listens.map(({ pattern, start }) => ({ pattern: place(pattern), start })),
    })),
  }
}
