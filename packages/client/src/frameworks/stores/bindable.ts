import type { AnyClient } from '../../core/of-client.js'

type Hook = (...args: readonly unknown[]) => unknown
/** A hook that makes itself another one, for a client. */
type BindableHook = Hook & { readonly of: (client: AnyClient) => Hook }

/**
 * Gives a hook its function `of`. Bundlers leave out a hook that nobody imports, if the call is marked as pure.
 * @param hook `length` is the place of its options: they have a default, which `length` does not count.
 */
export function bindable(hook: unknown): unknown {
  const call = hook as Hook
  const at = call.length
  const of =
    (client: AnyClient): Hook =>
    (...given) => {
      const args = [...given]
      args[at] = { client, ...(args[at] as object | undefined) }
      return call(...args)
    }
  return Object.assign(call, { of })
}

/** The hooks for a client; without one, as they are. */
export function bindHooks(hooks: Readonly<Record<string, unknown>>, client: AnyClient | undefined): unknown {
  const bind = ([name, hook]: [string, unknown]) => [name, (hook as BindableHook).of(client as AnyClient)]
  return client ? Object.fromEntries(Object.entries(hooks).map(bind)) : hooks
}
