import { useState } from 'react'
import { loaded } from 'webmq-client/parts'
import { useTopic } from 'webmq-client/react'
import type { ItemOpened } from './events'
import { openItems } from './gateway'

/** Items that a page shows; those that closed first are dropped. */
const MAX_ITEMS = 50

/** The items that are open, and those that have closed while the page was there; the newest first. */
export function useItems(): readonly ItemOpened[] {
  const [items, setItems] = useState<ReadonlyMap<string, ItemOpened>>(new Map())
  const add = (added: readonly ItemOpened[]) =>
    setItems((before) => {
      const all = new Map([...before, ...added.map((item) => [item.id, item] as const)])
      const sorted = [...all].sort(([, one], [, other]) => other.endsUs - one.endsUs)
      return new Map(sorted.slice(0, MAX_ITEMS))
    })
  useTopic('auction.items', (item) => add([item]), {
    receiver: (handler) => loaded(handler, async ({ signal }) => add(await openItems(signal))),
  })
  return [...items.values()]
}
