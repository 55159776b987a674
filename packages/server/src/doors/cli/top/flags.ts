/** Columns by which `top` orders the nodes, the largest first; names from A. */
export const NODE_ORDERS = ['connections', 'patterns', 'received', 'sent', 'name'] as const

export interface WatchFlags {
  readonly interval: number
  readonly patterns: number
  readonly sort: (typeof NODE_ORDERS)[number]
  readonly once?: true
  readonly json?: true
}
