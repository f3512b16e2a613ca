// Keeps the token of the link that was opened, in the storage of this origin alone, and goes to the page.
const token = document.querySelector('meta[name="eisen-token"]')?.content;
if (token) localStorage.setItem("eisen-token", token);
location.replace("/");
