/** The whole of `docs/bounds.md`, from the constants of the sources. */
export function boundsPage(): string
