import { isMatch } from './subjects.js'

/** What a user may publish to, or subscribe to. */
export interface Permission {
  /** `undefined`: everything. */
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

export interface NatsUser {
  readonly user?: string
  readonly password?: string
  readonly token?: string
  readonly publish?: Permission
  readonly subscribe?: Permission
}

export function isAllowed({ allow, deny = [] }: Permission = {}, subject: string): boolean {
  return allow?.some((pattern) => isIn(pattern, subject)) !== false && !isDenied({ deny }, subject)
}

/** A subscription that may be has messages that may not. */
export function isDenied({ deny = [] }: Permission = {}, subject: string): boolean {
  return deny.some((pattern) => isIn(pattern, subject))
}

function isIn(pattern: string, subject: string): boolean {
  return isMatch(pattern.split('.'), subject.split('.'))
}
