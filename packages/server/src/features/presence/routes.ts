import type { FeatureRoutes } from '../../doors/http/api/handlers/handler.js'
import { checkedKey } from '../../doors/http/api/handlers/read.js'
import { andThen } from '../../kernel/base/maybe-promise.js'
import type { Presence } from './presence.js'

export function presenceRoutes(presence: Presence): Pick<FeatureRoutes, 'presence'> {
  return {
    presence: (context, call) => {
      const key = checkedKey(context, call)
      return andThen(context.hooks?.presence(call.caller, 'get', key, undefined), () =>
        andThen(presence.list(key), (members) => ({ members })),
      )
    },
  }
}
