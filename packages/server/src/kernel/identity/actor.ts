import type { WorkMeter } from '../ports/work-meter.js'
import { countedAddress } from './client-address.js'
import { ANONYMOUS, type Claims, type Identity } from './identity.js'

/** How a request comes to the server. `operator`: over HTTP, with an API key. `process`: from the server's own process. */
export type Door = 'websocket' | 'sse' | 'http' | 'process' | 'operator'

/** Who asks for something. A session is one. */
export interface Actor {
  readonly door: Door
  /** Id of the session; empty without one. */
  readonly id: string
  /** `undefined` for anonymous clients, for the process and its operators, and before a session has an identity. */
  readonly userId: string | undefined
  /** Present while hooks want them. */
  readonly claims: Claims | undefined
  /** What it may do; `undefined` before a session has an identity: nothing. */
  readonly identity: Identity | undefined
  /** IP address; empty when it is not known. Cost: that of a session is put together at each call. */
  readonly address: string
  /** Counts work that it has caused, beside that of its requests, in units of about a microsecond; absent: nobody counts. */
  charge?: ((units: number) => void) | undefined
  /** Pays for what is read of the log for it; absent: nobody pays. */
  readonly meter?: WorkMeter | undefined
}

/** The head of the request that a client connects with. */
export interface ConnectFacts {
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
}

export function clientOverHttp(identity: Identity | undefined, address: string): Actor {
  return { door: 'http', id: '', userId: identity?.userId, claims: identity?.claims, identity, address }
}

/** Under which name clients are counted, whatever they come by: their user, or the address of anonymous ones, a /64 of IPv6. */
export function clientNameOf({ userId, address }: Pick<Actor, 'userId' | 'address'>): string {
  return userId === undefined ? `address ${countedAddress(address) ?? address}` : `user ${userId}`
}

export function operatorAt(address: string): Actor {
  return { ...PROCESS, door: 'operator', address }
}

/** Whether others may have its address: it is anonymous, and behind it is usually a proxy. */
export function isProxied({ userId, address }: Pick<Actor, 'userId' | 'address'>): boolean {
  return userId === undefined && countedAddress(address) === undefined
}

/** The program that the server is a part of. */
export const PROCESS: Actor = {
  door: 'process',
  id: '',
  userId: undefined,
  claims: undefined,
  identity: ANONYMOUS,
  address: '',
}

/** Whether it is the application itself: no hook is asked about it, and no client's limit holds for it. */
export function isTrusted({ door }: Pick<Actor, 'door'>): boolean {
  return door === 'process' || door === 'operator'
}
