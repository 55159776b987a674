import { encodeServerMessage } from 'webmq-client/protocol'
import type { Route } from '../patterns/router.js'
import { overflowOf } from '../patterns/variant.js'
import type { GroupOverflow } from '../ports/transport.js'

/** What the transport does with the messages of a route for listeners that lag. */
export function groupOverflowOf({ pattern, variant }: Route): GroupOverflow | undefined {
  switch (overflowOf(variant)) {
    case 'disconnect':
      return undefined
    case 'drop-oldest':
      return { policy: 'drop-oldest', notice: encodeServerMessage({ verb: 'gap', pattern, reason: 'slow-consumer' }) }
    case 'latest':
      return { policy: 'latest' }
    case 'latest-told':
      return { policy: 'latest', notice: encodeServerMessage({ verb: 'gap', pattern, reason: 'conflated' }) }
  }
}
