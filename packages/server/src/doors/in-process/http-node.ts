import { andThen } from '../../kernel/base/maybe-promise.js'
import { isTrusted } from '../../kernel/identity/actor.js'
import { routesOf } from '../../kernel/node/features.js'
import type { ServerNode } from '../../kernel/node/node.js'
import { formatPosition } from '../../kernel/ports/position.js'
import { requestAuthor } from '../../kernel/publishing/author.js'
import type { FeatureRoutes, RoutedNode } from '../http/api/handlers/handler.js'

/** A node, as HTTP sees it. */
export function routedNode({ parts, rooms }: ServerNode): RoutedNode {
  /** Loaded for the first request, or for the next one if that failed. */
  let routes: FeatureRoutes | undefined
  return {
    name: parts.name,
    revocations: rooms.features.cluster.revocations,
    publisher: rooms.publisher,
    authorOf(actor, isGone) {
      const { identity } = actor
      const limits = isTrusted(actor) || identity === undefined ? rooms.trusted : rooms.limits.of(identity)
      return requestAuthor(actor, limits, rooms.pendingByClient, isGone)
    },
    refused: (actor, action, code, target) => rooms.refusals.add(actor, action, code, target),
    operated: (actor, action, target) => parts.observer?.operated?.(actor, action, target),
    read: (range, key, reader) =>
      andThen(rooms.broker.read({ ...range, view: 'texts' }, [key], reader), ({ position, ...read }) => ({
        ...read,
        position: formatPosition(position),
      })),
    routes: async () => (routes ??= await routesOf(rooms.features)),
    patterns: () => rooms.router.routes(),
  }
}
