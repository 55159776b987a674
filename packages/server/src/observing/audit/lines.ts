import type { ErrorCode } from 'webmq-client/protocol'
import type { Door } from '../../identity/actor.js'
import type { ObservedAction, OperatorAction } from '../observer.js'

/** Who did it. */
export interface Who {
  readonly door: Door
  /** Session id, as in `welcome` and in the log; absent for requests over HTTP. */
  readonly session?: string | undefined
  /** `sub` of the token; absent for anonymous clients. */
  readonly user?: string | undefined
  /** The client's IP address; absent when it is not known. */
  readonly address?: string | undefined
}

/** One line of the audit log, without its `time`. `docs/security.md` lists the members. */
export type AuditEvent =
  | ({ readonly event: 'connected' } & Who)
  | ({ readonly event: 'disconnected' } & Who & {
        readonly code: number
        readonly reason: string
        readonly durationMs: number
      })
  | ({ readonly event: 'listened' | 'unlistened' } & Who & { readonly pattern: string })
  | ({ readonly event: 'refused' } & Who & {
        readonly action: ObservedAction
        readonly code: ErrorCode
        /** The key or the pattern. */
        readonly target?: string | undefined
      })
  | {
      readonly event: 'upgrade-refused'
      readonly address: string
      /** The page that asked; clients choose it, so it is cut. */
      readonly origin?: string | undefined
      readonly code: ErrorCode
    }
  /** What an operator did. */
  | ({ readonly event: 'operated' } & Who & { readonly action: OperatorAction; readonly target: string })
  /** Refusals of a session or an address that were not written, because there were too many within a second. */
  | { readonly event: 'omitted'; readonly session?: string; readonly address?: string; readonly count: number }
