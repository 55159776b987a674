import type { Position } from '../../ports/broker.js'

/**
 * Where a client stands that is on its way from one node to another: it has all of one log up to a place, and what had come in other logs up
 * to the `bases`. Logs have the same messages in orders of their own, so that one place does not say the other.
 */
export interface JointPlace extends Position {
  /** Id of a node: the epoch of its log. */
  readonly epoch: string
  /** Places in logs of other nodes, whose epochs are the begin of a node's id. */
  readonly bases: readonly Position[]
}

const RADIX = 36
/** Characters of a node's id that stand for it in a base: two of a hundred nodes begin alike once in 3,000 meshes. */
const PREFIX_CHARS = 6
/** The longest epoch there may be. */
const MAX_EPOCH_CHARS = 52

/** The epoch of positions on the way; `undefined` when there are too many bases to say. Three fit, below 60 million messages. */
export function formatJointEpoch(node: string, bases: readonly Position[]): string | undefined {
  const epoch = [node, ...bases.map(({ epoch, offset }) => epoch.slice(0, PREFIX_CHARS) + offset.toString(RADIX))]
  const text = epoch.join('.')
  return text.length <= MAX_EPOCH_CHARS ? text : undefined
}

/** What a position says; any text is one, if only of a node that nobody knows. */
export function parseJointPlace({ epoch, offset }: Position): JointPlace {
  const [node = epoch, ...bases] = epoch.split('.')
  return {
    epoch: node,
    offset,
    bases: bases.map((base) => ({
      epoch: base.slice(0, PREFIX_CHARS),
      offset: Number.parseInt(base.slice(PREFIX_CHARS), RADIX) || 0,
    })),
  }
}
