/** What an installation runs on. */
export const KINDS = ['compose', 'systemd', 'helm'] as const
export type Kind = (typeof KINDS)[number]

/** What stands in templates as `@NAME@`, by its name. */
export type Values = Readonly<Record<string, string>>
