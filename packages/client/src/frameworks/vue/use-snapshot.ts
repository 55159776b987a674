import { getCurrentInstance, onMounted, shallowReactive, type ToRefs, toRefs, watch } from 'vue'
import type { Store } from '../stores/store.js'

/** Runs `begin` once the component is mounted, or at once in another scope. Not on a server. */
function whenMounted(begin: () => void): void {
  if (getCurrentInstance()) onMounted(begin)
  else if (typeof document !== 'undefined') begin()
}

/**
 * Calls `begin` with what `read` returns, and again when that changes. What `begin` returns is called before the next
 * time, and when the component ends.
 */
export function whileMounted<V>(read: () => V, begin: (value: V) => (() => void) | undefined): void {
  whenMounted(() => {
    watch(
      read,
      (value, _, onCleanup) => {
        const end = begin(value)
        if (end) onCleanup(end)
      },
      { immediate: true },
    )
  })
}

/** What the store shows that `make` returns; the members of its initial value until the component is mounted. */
export function useSnapshot<S extends object>(make: () => Store<S>): ToRefs<S> {
  const shown = shallowReactive({ ...make().initial }) as S
  whileMounted(make, (store) => {
    const show = () => Object.assign(shown, store.getSnapshot())
    show()
    return store.subscribe(show)
  })
  return toRefs(shown)
}
