import { MAX_TIMER_MS } from '../../core/options.js'

/** Something that several components use together. */
export interface Resource {
  close(): void
}

interface Held {
  readonly resource: Resource
  userCount: number
  timer?: ReturnType<typeof setTimeout>
}

/** Frameworks end a component and begin it again at once: in development, in a new layout, when it was hidden. */
const GRACE_MS = 1_000

const resourcesByScope = new WeakMap<object, Map<string, Held>>()

/** Returns the resource of this name if it is in use, or was until a moment ago. */
export function find(scope: object, name: string): Resource | undefined {
  return resourcesByScope.get(scope)?.get(name)?.resource
}

/**
 * Returns the resource of this name, and a function that releases it. The first user opens it; it is closed `graceMs`
 * (default 1,000) after its last user has released it.
 */
export function acquire<R extends Resource>(
  scope: object,
  name: string,
  open: () => R,
  graceMs = GRACE_MS,
): readonly [resource: R, release: () => void] {
  const resources = resourcesByScope.get(scope) ?? new Map<string, Held>()
  resourcesByScope.set(scope, resources)
  const held = resources.get(name) ?? { resource: open(), userCount: 0 }
  resources.set(name, held)
  clearTimeout(held.timer)
  held.userCount++
  return [
    held.resource as R,
    () => {
      if (--held.userCount > 0) return
      held.timer = setTimeout(
        () => {
          resources.delete(name)
          held.resource.close()
        },
        Math.min(graceMs, MAX_TIMER_MS),
      )
    },
  ]
}
