import type { TableChange, TableEntries } from '../nodes/index.js'
import { isCount } from '../nodes/index.js'
import { type SlotName, slotIdOf } from './group-message.js'
import type { Slots } from './slots.js'
import { nameFrom, nameItem } from './task-message.js'

/** What another node says of one queue group. */
export interface SlotChange extends TableChange {
  readonly node: string
  readonly name: SlotName
  /** Its members; 0: none any more. */
  readonly count: number
}

/** Between nodes, an entry of a queue group is the number of members that a node has of it. */
export function slotEntries(slots: Slots, onDropped: () => void): TableEntries<SlotChange> {
  const text = (name: SlotName, count: number) => JSON.stringify([...nameItem(name), count])
  const setRemote = (node: string, name: SlotName, count: number) => {
    try {
      slots.setRemote(node, name, count)
    } catch {
      // Too many: counted and shown.
      onDropped()
    }
  }
  return {
    *ids() {
      for (const { id, members } of slots.all()) if (members.length > 0) yield id
    },
    entryText(id) {
      const slot = slots.get(id)
      return slot === undefined || slot.members.length === 0 ? undefined : text(slot.name, slot.members.length)
    },
    removalText: (id) => text(slotNameOf(id), 0),
    decode(item, node) {
      const name = nameFrom(item)
      const count = Array.isArray(item) ? item[3] : undefined
      return name !== undefined && isCount(count) ? { id: slotIdOf(name), node, name, count } : undefined
    },
    apply: ({ node, name, count }) => setRemote(node, name, count),
    *idsOf(node) {
      for (const { id, remote } of slots.all()) if (remote.has(node)) yield id
    },
    remove(node, id) {
      const slot = slots.get(id)
      if (slot !== undefined) setRemote(node, slot.name, 0)
    },
    removeNode: (node) => slots.removeNode(node),
  }
}

/** The name in an id of {@link slotIdOf}. */
function slotNameOf(id: string): SlotName {
  const [letter, group = '', ...pattern] = id.split(' ')
  return { kind: letter === 'l' ? 'listen' : 'respond', group, pattern: pattern.join(' ') }
}
