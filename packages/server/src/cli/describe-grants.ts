import type { Grant } from '../identity/index.js'

/** Describes grants, one line per pattern. */
export function describeGrants(grants: readonly Grant[]): string {
  if (grants.length === 0) return '  nothing\n'
  return grants
    .flatMap(({ keys, allow }) => keys.map((pattern) => `  ${allow.join(' and ') || 'nothing'} ${pattern}\n`))
    .join('')
}
