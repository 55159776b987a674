/** Address of the repository. Everything else that links into it is derived from here, or held to it by a test. */
export const REPOSITORY_URL = 'https://github.com/webmq/webmq'

/** Where users read the files of `docs`. Not derived, which would cost a bundle both texts. */
export const DOCS_URL = 'https://github.com/webmq/webmq/blob/main/docs/'
