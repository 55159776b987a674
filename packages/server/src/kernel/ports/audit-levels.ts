/** What the audit log has: `refusals` alone, `connections` as well, or also each listen. */
export const AUDIT_LEVELS = ['refusals', 'connections', 'listens'] as const

export type AuditLevel = (typeof AUDIT_LEVELS)[number]
