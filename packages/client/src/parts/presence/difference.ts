import { isSameJson } from '../../core/events/same-json.js'
import type { Member, PresenceEvents } from './types.js'
import { usersOnlyIn } from './users.js'

/** An event and the argument of its handlers. */
export type PresenceEvent = {
  readonly [E in keyof PresenceEvents]: readonly [E, PresenceEvents[E]]
}[keyof PresenceEvents]

/** The events that lead from `before` to `after`. */
export function differenceOf(
  before: ReadonlyMap<string, Member>,
  after: ReadonlyMap<string, Member>,
): readonly PresenceEvent[] {
  const events: PresenceEvent[] = []
  for (const [id, member] of before) if (!after.has(id)) events.push(['leave', member])
  for (const [id, member] of after) {
    const known = before.get(id)
    if (!known) events.push(['enter', member])
    else if (!isSameJson(known, member)) events.push(['update', member])
  }
  if (events.every(([event]) => event === 'update')) return events
  const lists = [[...before.values()], [...after.values()]] as const
  for (const user of usersOnlyIn(lists[0], lists[1])) events.push(['user-leave', user])
  for (const user of usersOnlyIn(lists[1], lists[0])) events.push(['user-enter', user])
  return events
}
