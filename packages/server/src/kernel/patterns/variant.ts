import type { ListenOverflow } from 'webmq-client/protocol'
import type { GroupId } from '../ports/transport.js'

/** How the messages of a listen are written: WebSocket messages, or events of an event stream. */
export type Format = 'websocket' | 'sse'

/** In the order of their numbers in a {@link Variant}. */
export const OVERFLOWS = ['disconnect', 'drop-oldest', 'latest', 'latest-told'] as const satisfies ListenOverflow[]

declare const brand: unique symbol

/**
 * Format, overflow and meta of a listen, as a number from 0 to 15: bit 3 is meta, bit 2 is the format, bits 0 and 1 are the
 * overflow.
 */
export type Variant = number & { readonly [brand]: 'variant' }

/** Bits of a group number below its variant. Watched keys of presence begin at bit 31. */
const INDEX_BITS = 27
const META_VARIANT = 8
const META_GROUP = META_VARIANT << INDEX_BITS
const SSE_VARIANT = 4
const SSE_GROUP = SSE_VARIANT << INDEX_BITS
const OVERFLOW_MASK = 3
const OVERFLOW_GROUP_MASK = OVERFLOW_MASK << INDEX_BITS

const MAX_ROUTES = 2 ** INDEX_BITS
export const DEFAULT_VARIANT = 0 as Variant

export function variantOf(format: Format, overflow: ListenOverflow, hasMeta = false): Variant {
  return ((hasMeta ? META_VARIANT : 0) | (format === 'sse' ? SSE_VARIANT : 0) | OVERFLOWS.indexOf(overflow)) as Variant
}

export function overflowOf(variant: Variant): ListenOverflow {
  return OVERFLOWS[variant & OVERFLOW_MASK] ?? 'disconnect'
}

export function formatOf(variant: Variant): Format {
  return (variant & SSE_VARIANT) !== 0 ? 'sse' : 'websocket'
}

/** Whether messages come with who published them, and when. */
export function isMeta(variant: Variant): boolean {
  return (variant & META_VARIANT) !== 0
}

export function withMeta(variant: Variant): Variant {
  return (variant | META_VARIANT) as Variant
}

/** The group number of a route: unique by its index, and it says the variant. */
export function groupOf(index: number, variant: Variant): GroupId {
  return (index | (variant << INDEX_BITS)) as GroupId
}

export function indexOf(group: GroupId): number {
  return group & (MAX_ROUTES - 1)
}

/** Whether the members of a group of a pattern get events of an event stream. */
export function isSse(group: GroupId): boolean {
  return (group & SSE_GROUP) !== 0
}

/** Whether the members of a group of a pattern get who published a message, and when. */
export function getsMeta(group: GroupId): boolean {
  return (group & META_GROUP) !== 0
}

/** Whether a group of a pattern has another overflow than `disconnect`. */
export function mayDrop(group: GroupId): boolean {
  return (group & OVERFLOW_GROUP_MASK) !== 0
}
