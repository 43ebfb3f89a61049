/** An error of the page itself, with a status like the library's: alerts.js has advice for each. */
export const fault = (status, message) => Object.assign(new Error(message), { status });
