/** Address of the repository. Everything else that links into it is derived from here, or held to it by a test. */
export const REPOSITORY_URL = 'https://github.com/webmq/webmq'

/** Where users read the files of `docs`. */
export const DOCS_URL = `${REPOSITORY_URL}/blob/main/docs/`
