/** The whole of `docs/configuration.md`. */
export function configurationPage(): string
