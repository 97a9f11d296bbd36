"""The Streamlit side of the app: state, cached models, controls and the linked view."""
