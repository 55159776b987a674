import type { AnyClient } from '../of-client.js'

/** Which argument of a hook has its options. The same in all frameworks. */
const OPTIONS_AT: Readonly<Record<string, number>> = {
  useClient: 0,
  useStatus: 0,
  useTopic: 2,
  usePublish: 1,
  useLatest: 1,
  useStateTopic: 1,
  useMessages: 1,
  useStream: 1,
  usePresence: 2,
}

/** Returns the hooks with `client` as their option, unless a call names another one. */
export function bindHooks(hooks: Readonly<Record<string, unknown>>, client: AnyClient | undefined): unknown {
  const bind = ([name, hook]: [string, unknown]) => [
    name,
    (...args: unknown[]) => {
      const at = OPTIONS_AT[name] as number
      args[at] = { client, ...(args[at] as object | undefined) }
      return (hook as (...args: unknown[]) => unknown)(...args)
    },
  ]
  return client ? Object.fromEntries(Object.entries(hooks).map(bind)) : hooks
}
